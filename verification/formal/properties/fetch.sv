// Fetch with two readers and one window: bursts lie in a window that permits reading and do not cross 4 KiB; with
// HANDSHAKE: an address stays offered; with COUNTED: no more bursts are unanswered than may be.
module fetch #(parameter OUTSTANDING = 16, ROW = 3, COUNTED = 0, HANDSHAKE = 0) (
    input clk, rst,
    input [71:0] request0, request1, input request0_valid, request1_valid,
    input [129:0] windows, input ar_ready, input [66:0] r, input r_valid
);
    wire request0_ready, request1_ready, answer0_valid, answer1_valid, ar_valid, r_ready, idle;
    wire pending, allowed;
    wire [71:0] burst;
    wire [138:0] answer0, answer1;
    wire [39:0] ar;
    (* anyconst *) wire [129:0] opened;
    dut_fetch dut (
        .clk, .rst,
        .readers__0__request__payload(request0), .readers__0__request__valid(request0_valid),
        .readers__0__request__ready(request0_ready), .readers__0__answer_valid(answer0_valid),
        .readers__0__answer(answer0),
        .readers__1__request__payload(request1), .readers__1__request__valid(request1_valid),
        .readers__1__request__ready(request1_ready), .readers__1__answer_valid(answer1_valid),
        .readers__1__answer(answer1),
        .windows, .bus__ar__payload(ar), .bus__ar__valid(ar_valid), .bus__ar__ready(ar_ready),
        .bus__r__payload(r), .bus__r__valid(r_valid), .bus__r__ready(r_ready), .idle,
        .pending, .allowed, .burst);
    reset_once start (.clk, .rst);
    assume_stable #(.WIDTH(72)) held0 (.clk, .rst, .valid(request0_valid), .ready(request0_ready), .data(request0));
    assume_stable #(.WIDTH(72)) held1 (.clk, .rst, .valid(request1_valid), .ready(request1_ready), .data(request1));
    function [12:0] burst_end(input [11:0] address, input [7:0] len);
        burst_end = address + ((len + 1) << ROW);
    endfunction
    wire [63:0] base = opened[63:0], limit = opened[127:64];
    function inside(input [63:0] address, input [7:0] len);
        inside = opened[128] && base <= address && {1'b0, address} + ((len + 65'd1) << ROW) <= limit;
    endfunction
    always @* begin
        // The host does not change windows while a program runs, nor opens some beyond the bus.
        assume (windows == opened);
        assume (limit <= 64'h1_0000_0000);
        // The readers' contract.
        assume (burst_end(request0[11:0], request0[71:64]) <= 4096 && burst_end(request1[11:0], request1[71:64]) <= 4096);
    end
    generate if (HANDSHAKE)
        stream_stable #(.WIDTH(40)) ar_stable (.clk, .rst, .valid(ar_valid), .ready(ar_ready), .data(ar));
    endgenerate

    reg [$clog2(OUTSTANDING+2)-1:0] unanswered;  // Bursts on the bus whose last beat has not come.
    wire asks = ar_valid & ar_ready, ends = r_valid & r_ready & r[66];
    always @(posedge clk) unanswered <= rst ? 0 : unanswered + asks - ends;
    generate if (!COUNTED && !HANDSHAKE) always @* if (!rst) begin
        page: assert (!ar_valid || burst_end(ar[11:0], ar[39:32]) <= 4096);
        window: assert (!ar_valid || inside(ar[31:0], ar[39:32]));
        // What it knows inside: the burst that waits was checked.
        checked: assert (!pending || (burst_end(burst[11:0], burst[71:64]) <= 4096
                                      && (!allowed || inside(burst[63:0], burst[71:64]))));
        one_reader: assert (!(answer0_valid && answer1_valid));
        refusal_seen: cover (answer1_valid && !r_ready);
    end endgenerate
    // Refused bursts lie between the others: to count is to know the whole queue.
    generate if (COUNTED) always @* if (!rst) begin
        credit: assert (unanswered <= OUTSTANDING);
        no_beat_unasked: assert (!(r_ready && unanswered == 0));
        all_out_seen: cover (unanswered == OUTSTANDING);
    end endgenerate
endmodule
