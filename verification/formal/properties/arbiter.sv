// AxiArbiter between a master that only reads and two that read and write: per master every address, beat and
// response arrives once, in order, under its own ID; W beats go out in the order of the addresses on the bus;
// what is offered stays; and, if bus and masters do not stall for more than PATIENCE cycles, everyone gets his turn.
module arbiter #(parameter PATIENCE = 1) (
    input clk, rst,
    input ar0_bit, ar1_bit, ar2_bit, aw1_bit, aw2_bit, w1_last, w2_last, r_bit, b_bit,
    input ar0_valid, ar1_valid, ar2_valid, aw1_valid, aw2_valid,
    input w1_valid, w2_valid,
    input [2:0] r_ready, input [2:1] b_ready,
    input awready, arready, wready, input [1:0] bid, input bvalid,
    input [1:0] rid, input rlast, rvalid
);
    // Nothing looks at addresses and data, so one bit stands for all of them.
    wire [39:0] ar0 = ar0_bit, ar1 = ar1_bit, ar2 = ar2_bit, aw1 = aw1_bit, aw2 = aw2_bit;
    wire [72:0] w1 = {w1_last, 72'd0}, w2 = {w2_last, 72'd1};
    wire [63:0] rdata = r_bit;
    wire [1:0] rresp = 0, bresp = b_bit;
    wire ar0_ready, ar1_ready, ar2_ready, aw1_ready, aw2_ready, w1_ready, w2_ready;
    wire [66:0] r0, r1, r2;
    wire [1:0] b1, b2;
    wire r0_valid, r1_valid, r2_valid, b1_valid, b2_valid;
    wire [1:0] awid, arid;
    wire [31:0] awaddr, araddr;
    wire [7:0] awlen, arlen, wstrb;
    wire [63:0] wdata;
    wire awvalid, arvalid, wvalid, wlast, bready, rready;
    dut_arbiter dut (
        .clk, .rst,
        .master0__ar__payload(ar0), .master0__ar__valid(ar0_valid), .master0__ar__ready(ar0_ready),
        .master1__ar__payload(ar1), .master1__ar__valid(ar1_valid), .master1__ar__ready(ar1_ready),
        .master2__ar__payload(ar2), .master2__ar__valid(ar2_valid), .master2__ar__ready(ar2_ready),
        .master1__aw__payload(aw1), .master1__aw__valid(aw1_valid), .master1__aw__ready(aw1_ready),
        .master2__aw__payload(aw2), .master2__aw__valid(aw2_valid), .master2__aw__ready(aw2_ready),
        .master1__w__payload(w1), .master1__w__valid(w1_valid), .master1__w__ready(w1_ready),
        .master2__w__payload(w2), .master2__w__valid(w2_valid), .master2__w__ready(w2_ready),
        .master0__r__payload(r0), .master0__r__valid(r0_valid), .master0__r__ready(r_ready[0]),
        .master1__r__payload(r1), .master1__r__valid(r1_valid), .master1__r__ready(r_ready[1]),
        .master2__r__payload(r2), .master2__r__valid(r2_valid), .master2__r__ready(r_ready[2]),
        .master1__b__payload(b1), .master1__b__valid(b1_valid), .master1__b__ready(b_ready[1]),
        .master2__b__payload(b2), .master2__b__valid(b2_valid), .master2__b__ready(b_ready[2]),
        .axi__awid(awid), .axi__awaddr(awaddr), .axi__awlen(awlen), .axi__awvalid(awvalid), .axi__awready(awready),
        .axi__arid(arid), .axi__araddr(araddr), .axi__arlen(arlen), .axi__arvalid(arvalid), .axi__arready(arready),
        .axi__wdata(wdata), .axi__wstrb(wstrb), .axi__wlast(wlast), .axi__wvalid(wvalid), .axi__wready(wready),
        .axi__bid(bid), .axi__bresp(bresp), .axi__bvalid(bvalid), .axi__bready(bready),
        .axi__rid(rid), .axi__rdata(rdata), .axi__rresp(rresp), .axi__rlast(rlast), .axi__rvalid(rvalid),
        .axi__rready(rready));
    reset_once start (.clk, .rst);

    // What masters and the bus offer stays until it is taken.
    assume_stable #(.WIDTH(40)) ar0_held (.clk, .rst, .valid(ar0_valid), .ready(ar0_ready), .data(ar0));
    assume_stable #(.WIDTH(40)) ar1_held (.clk, .rst, .valid(ar1_valid), .ready(ar1_ready), .data(ar1));
    assume_stable #(.WIDTH(40)) ar2_held (.clk, .rst, .valid(ar2_valid), .ready(ar2_ready), .data(ar2));
    assume_stable #(.WIDTH(40)) aw1_held (.clk, .rst, .valid(aw1_valid), .ready(aw1_ready), .data(aw1));
    assume_stable #(.WIDTH(40)) aw2_held (.clk, .rst, .valid(aw2_valid), .ready(aw2_ready), .data(aw2));
    assume_stable #(.WIDTH(73)) w1_held (.clk, .rst, .valid(w1_valid), .ready(w1_ready), .data(w1));
    assume_stable #(.WIDTH(73)) w2_held (.clk, .rst, .valid(w2_valid), .ready(w2_ready), .data(w2));
    // Every address once, in order, under the ID of its master.
    stream_order #(.WIDTH(40), .CAPACITY(1), .PROMPT(0)) ar0_order (.clk, .rst,
        .i_valid(ar0_valid), .i_ready(ar0_ready), .i_data(ar0),
        .o_valid(arvalid && arid == 0), .o_ready(arready), .o_data({arlen, araddr}));
    stream_order #(.WIDTH(40), .CAPACITY(1), .PROMPT(0)) ar1_order (.clk, .rst,
        .i_valid(ar1_valid), .i_ready(ar1_ready), .i_data(ar1),
        .o_valid(arvalid && arid == 1), .o_ready(arready), .o_data({arlen, araddr}));
    stream_order #(.WIDTH(40), .CAPACITY(1), .PROMPT(0)) ar2_order (.clk, .rst,
        .i_valid(ar2_valid), .i_ready(ar2_ready), .i_data(ar2),
        .o_valid(arvalid && arid == 2), .o_ready(arready), .o_data({arlen, araddr}));
    // At most one write address is granted a cycle; they leave in the order of the grants.
    wire grant1 = aw1_valid & aw1_ready, grant2 = aw2_valid & aw2_ready;
    stream_order #(.WIDTH(42), .CAPACITY(1), .PROMPT(0)) aw_order (.clk, .rst,
        .i_valid(grant1 | grant2), .i_ready(1'b1), .i_data(grant2 ? {2'd2, aw2} : {2'd1, aw1}),
        .o_valid(awvalid), .o_ready(awready), .o_data({awid, awlen, awaddr}));
    // A beat a cycle goes from the masters to the bus, in order, and bursts of them in the order of the grants.
    wire beat1 = w1_valid & w1_ready, beat2 = w2_valid & w2_ready;
    stream_order #(.WIDTH(73), .CAPACITY(1), .PROMPT(0)) w_order (.clk, .rst,
        .i_valid(beat1 | beat2), .i_ready(1'b1), .i_data(beat2 ? w2 : w1),
        .o_valid(wvalid), .o_ready(wready), .o_data({wlast, wstrb, wdata}));
    stream_order #(.WIDTH(1), .CAPACITY(16), .PROMPT(0)) burst_order (.clk, .rst,
        .i_valid(grant1 | grant2), .i_ready(1'b1), .i_data(grant2),
        .o_valid(beat1 | beat2), .o_ready(beat2 ? w2_last : w1_last), .o_data(beat2));
    always @* if (!rst) begin
        one_grant: assert (!(grant1 && grant2));
        one_beat: assert (!(beat1 && beat2));
    end
    // Every response once, in order, to the master that its ID names.
    stream_order #(.WIDTH(67), .CAPACITY(1), .PROMPT(0)) r0_order (.clk, .rst,
        .i_valid(rvalid && rid == 0), .i_ready(rready), .i_data({rlast, rresp, rdata}),
        .o_valid(r0_valid), .o_ready(r_ready[0]), .o_data(r0));
    stream_order #(.WIDTH(67), .CAPACITY(1), .PROMPT(0)) r1_order (.clk, .rst,
        .i_valid(rvalid && rid == 1), .i_ready(rready), .i_data({rlast, rresp, rdata}),
        .o_valid(r1_valid), .o_ready(r_ready[1]), .o_data(r1));
    stream_order #(.WIDTH(67), .CAPACITY(1), .PROMPT(0)) r2_order (.clk, .rst,
        .i_valid(rvalid && rid == 2), .i_ready(rready), .i_data({rlast, rresp, rdata}),
        .o_valid(r2_valid), .o_ready(r_ready[2]), .o_data(r2));
    stream_order #(.WIDTH(2), .CAPACITY(1), .PROMPT(0)) b1_order (.clk, .rst,
        .i_valid(bvalid && bid == 1), .i_ready(bready), .i_data(bresp),
        .o_valid(b1_valid), .o_ready(b_ready[1]), .o_data(b1));
    stream_order #(.WIDTH(2), .CAPACITY(1), .PROMPT(0)) b2_order (.clk, .rst,
        .i_valid(bvalid && bid == 2), .i_ready(bready), .i_data(bresp),
        .o_valid(b2_valid), .o_ready(b_ready[2]), .o_data(b2));

    // What is offered on the bus and to the masters stays.
    stream_stable #(.WIDTH(42)) ar_stable (.clk, .rst, .valid(arvalid), .ready(arready), .data({arid, arlen, araddr}));
    stream_stable #(.WIDTH(42)) aw_stable (.clk, .rst, .valid(awvalid), .ready(awready), .data({awid, awlen, awaddr}));
    stream_stable #(.WIDTH(73)) w_stable (.clk, .rst, .valid(wvalid), .ready(wready), .data({wlast, wstrb, wdata}));
    stream_stable #(.WIDTH(67)) r0_stable (.clk, .rst, .valid(r0_valid), .ready(r_ready[0]), .data(r0));
    stream_stable #(.WIDTH(67)) r1_stable (.clk, .rst, .valid(r1_valid), .ready(r_ready[1]), .data(r1));
    stream_stable #(.WIDTH(67)) r2_stable (.clk, .rst, .valid(r2_valid), .ready(r_ready[2]), .data(r2));
    stream_stable #(.WIDTH(2)) b1_stable (.clk, .rst, .valid(b1_valid), .ready(b_ready[1]), .data(b1));
    stream_stable #(.WIDTH(2)) b2_stable (.clk, .rst, .valid(b2_valid), .ready(b_ready[2]), .data(b2));

    // Fairness in, fairness out: three take turns on AR; a response waits for its master only.
    assume_at_most #(.LIMIT(PATIENCE)) patient_ar (.clk, .rst, .waits(~arready));
    assume_at_most #(.LIMIT(PATIENCE)) patient_aw (.clk, .rst, .waits(~awready));
    assume_at_most #(.LIMIT(PATIENCE)) patient_w (.clk, .rst, .waits(~wready));
    assume_at_most #(.LIMIT(PATIENCE)) patient_r0 (.clk, .rst, .waits(~r_ready[0]));
    assume_at_most #(.LIMIT(PATIENCE)) patient_r1 (.clk, .rst, .waits(~r_ready[1]));
    assume_at_most #(.LIMIT(PATIENCE)) patient_r2 (.clk, .rst, .waits(~r_ready[2]));
    assume_at_most #(.LIMIT(PATIENCE)) patient_b1 (.clk, .rst, .waits(~b_ready[1]));
    assume_at_most #(.LIMIT(PATIENCE)) patient_b2 (.clk, .rst, .waits(~b_ready[2]));
    assume_at_most #(.LIMIT(PATIENCE)) eager_w1 (.clk, .rst, .waits(~w1_valid));
    assume_at_most #(.LIMIT(PATIENCE)) eager_w2 (.clk, .rst, .waits(~w2_valid));
    waits_at_most #(.LIMIT(3 * (PATIENCE + 1))) ar0_served (.clk, .rst, .waits(ar0_valid & ~ar0_ready));
    waits_at_most #(.LIMIT(3 * (PATIENCE + 1))) ar1_served (.clk, .rst, .waits(ar1_valid & ~ar1_ready));
    waits_at_most #(.LIMIT(3 * (PATIENCE + 1))) ar2_served (.clk, .rst, .waits(ar2_valid & ~ar2_ready));
    waits_at_most #(.LIMIT(PATIENCE + 1)) r_taken (.clk, .rst, .waits(rvalid & ~rready));
    waits_at_most #(.LIMIT(PATIENCE + 1)) b_taken (.clk, .rst, .waits(bvalid & ~bready));
endmodule
