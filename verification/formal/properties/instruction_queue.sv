// InstructionQueue: order, capacity, latency, stability.
module instruction_queue #(parameter WIDTH = 2, DEPTH = 4) (
    input clk, rst, input i_valid, input [WIDTH-1:0] i_data, input o_ready
);
    wire i_ready, o_valid;
    wire [WIDTH-1:0] o_data;
    wire [$clog2(DEPTH+2)-1:0] held;
    dut_instruction_queue dut (.clk, .rst, .i__valid(i_valid), .i__ready(i_ready), .i__payload(i_data),
                               .o__valid(o_valid), .o__ready(o_ready), .o__payload(o_data));
    reset_once start (.clk, .rst);
    stream_order #(.WIDTH(WIDTH), .CAPACITY(DEPTH), .LATENCY(0)) order (.*);
    stream_stable #(.WIDTH(WIDTH)) stable (.clk, .rst, .valid(o_valid), .ready(o_ready), .data(o_data));
    always @* if (!rst) full_seen: cover (held == DEPTH);
endmodule
