// AddressGenerator: exactly the offsets of the pattern, in order, each once, against four nested loops.
module address_generator #(parameter OFFSET = 6, STRIDE = 4, COUNT = 2, MAX_STEP = 1) (
    input clk, rst, load, input [OFFSET-1:0] start, input [4*(STRIDE+COUNT)-1:0] dims, input next,
    input [$clog2(MAX_STEP+1)-1:0] step
);
    localparam EACH = STRIDE + COUNT;
    wire valid, last;
    wire [OFFSET-1:0] offset;
    wire [STRIDE-1:0] stride;
    wire [COUNT-1:0] left;
    wire [OFFSET-1:0] base1, base2, base3;
    wire [4*EACH-1:0] dims_;
    wire [COUNT-1:0] index0, index1, index2, index3;
    reset_once begins (.clk, .rst);
    generate if (MAX_STEP == 1)
        dut_address_generator dut (.clk, .rst, .load, .start, .dims, .next, .valid, .offset, .last,
                                   .dims_, .base1, .base2, .base3, .index0, .index1, .index2, .index3);
    else
        dut_address_generator dut (.clk, .rst, .load, .start, .dims, .next, .valid, .offset, .last,
                                   .step, .stride, .left,
                                   .dims_, .base1, .base2, .base3, .index0, .index1, .index2, .index3);
    endgenerate

    // for (i3..) for (i2..) for (i1..) for (i0..) origin + i0 s0 + i1 s1 + i2 s2 + i3 s3, a step of the innermost
    // loop passing over `steps` elements.
    reg [OFFSET-1:0] origin;
    reg [4*EACH-1:0] loops;
    reg [COUNT-1:0] i0, i1, i2, i3;
    reg [OFFSET-1:0] o0, o1, o2, o3;  // Products i s, summed up.
    reg running;
    wire signed [STRIDE-1:0] s0 = loops[0 +: STRIDE], s1 = loops[EACH +: STRIDE],
                             s2 = loops[2*EACH +: STRIDE], s3 = loops[3*EACH +: STRIDE];
    wire [COUNT-1:0] c0 = loops[STRIDE +: COUNT], c1 = loops[EACH+STRIDE +: COUNT],
                     c2 = loops[2*EACH+STRIDE +: COUNT], c3 = loops[3*EACH+STRIDE +: COUNT];
    wire [$clog2(MAX_STEP+1)-1:0] steps = MAX_STEP == 1 ? 1 : step;
    wire e0 = c0 - i0 == steps, e1 = i1 == c1 - 1'b1, e2 = i2 == c2 - 1'b1, e3 = i3 == c3 - 1'b1;
    wire ends = e0 && e1 && e2 && e3;
    wire signed [OFFSET-1:0] t0 = s0, t1 = s1, t2 = s2, t3 = s3;  // Sign extended.
    always @(posedge clk)
        if (rst) running <= 0;
        else if (load) begin
            origin <= start; loops <= dims;
            i0 <= 0; i1 <= 0; i2 <= 0; i3 <= 0; o0 <= 0; o1 <= 0; o2 <= 0; o3 <= 0;
            running <= dims[STRIDE +: COUNT] != 0 && dims[EACH+STRIDE +: COUNT] != 0
                       && dims[2*EACH+STRIDE +: COUNT] != 0 && dims[3*EACH+STRIDE +: COUNT] != 0;
        end else if (next) begin
            if (ends) running <= 0;
            if (!e0) begin i0 <= i0 + steps; o0 <= o0 + t0 * steps; end
            else begin
                i0 <= 0; o0 <= 0;
                if (!e1) begin i1 <= i1 + 1; o1 <= o1 + t1; end
                else begin
                    i1 <= 0; o1 <= 0;
                    if (!e2) begin i2 <= i2 + 1; o2 <= o2 + t2; end
                    else begin
                        i2 <= 0; o2 <= 0;
                        if (!e3) begin i3 <= i3 + 1; o3 <= o3 + t3; end
                    end
                end
            end
        end
    always @* if (!rst) begin
        assume (!next || valid);
        assume (!load || !running || (next && ends));
        assume (!running || (steps != 0 && steps <= c0 - i0));
        same_length: assert (valid == running);
        same_offset: assert (!running || offset == origin + o0 + o1 + o2 + o3);
        same_end: assert (!running || last == ends);
        counters_in_range: assert (!running || (i0 < c0 && i1 < c1 && i2 < c2 && i3 < c3));
        // What it knows inside: where each loop began its present pass.
        same_dims: assert (!running || dims_ == loops);
        same_index: assert (!running || (index0 == i0 && index1 == i1 && index2 == i2 && index3 == i3));
        same_base1: assert (!running || base1 == origin + o1 + o2 + o3);
        same_base2: assert (!running || base2 == origin + o2 + o3);
        same_base3: assert (!running || base3 == origin + o3);
        carry_seen: cover (running && i3 == 1 && i2 == 1 && i1 == 1 && i0 == 1);
        end_seen: cover (running && ends && i0 != 0 && i1 != 0 && load);
    end
    generate if (MAX_STEP > 1) always @* if (!rst) begin
        same_left: assert (!running || left == c0 - i0);
        same_stride: assert (!running || stride == s0);
    end endgenerate
endmodule
