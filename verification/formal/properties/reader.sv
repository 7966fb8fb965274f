// Reader on the bus: addresses stay offered, lie inside a window that permits reading, bursts do not cross 4 KiB and
// no more are unanswered than CREDIT; bytes are pushed only into room that was claimed.
module reader #(parameter CREDIT = 128, ROW = 3, CAPACITY = 64) (
    input clk, rst,
    input [341:0] job, input job_valid, input ar_ready, input [66:0] r, input r_valid,
    input sbuf_ready, sbuf_valid, psum_ready, psum_valid,
    input [6:0] free, input stop
);
    (* anyconst *) wire [129:0] windows;
    wire job_ready, ar_valid, r_ready, push_valid, fault, quiet, sbuf_asks, psum_asks;
    wire [39:0] ar;
    wire [3:0] claim;
    wire [71:0] piece;
    dut_reader dut (
        .clk, .rst, .i__payload(job), .i__valid(job_valid), .i__ready(job_ready),
        .bus__ar__payload(ar), .bus__ar__valid(ar_valid), .bus__ar__ready(ar_ready),
        .bus__r__payload(r), .bus__r__valid(r_valid), .bus__r__ready(r_ready),
        .sbuf__request__valid(sbuf_asks), .sbuf__request__ready(sbuf_ready), .sbuf__valid(sbuf_valid),
        .sbuf__row(64'b0), .sbuf__lanes(64'b0),
        .psum__request__valid(psum_asks), .psum__request__ready(psum_ready), .psum__valid(psum_valid),
        .psum__row(64'b0), .psum__lanes(64'b0),
        .windows, .push__free(free), .push__claim(claim), .push__valid(push_valid), .push__piece(piece),
        .stop, .fault, .quiet);
    reset_once start (.clk, .rst);
    stream_stable #(.WIDTH(40)) ar_stable (.clk, .rst, .valid(ar_valid), .ready(ar_ready), .data(ar));
    wire [12:0] burst_end = {ar[11:ROW], {ROW{1'b0}}} + ((ar[39:32] + 13'd1) << ROW);
    reg [$clog2(CREDIT+2)-1:0] unanswered;
    wire asks = ar_valid & ar_ready, ends = r_valid & r_ready & r[66];
    always @(posedge clk) unanswered <= rst ? 0 : unanswered + asks - ends;
    always @* if (!rst) begin
        // The decoder's contract: a space that exists, elements of up to 4 bytes, no empty job.
        assume (job[1:0] != 3 && job[339:338] != 3 && job[81:74] != 0);
        assume (job[1:0] != 0 || (!job[340] && job[81:74] == 1));
        assume (job[145:114] != 0 && job[209:178] != 0 && job[273:242] != 0 && job[337:306] != 0);
        assume (windows[127:64] <= 64'h1_0000_0000);
        page: assert (!ar_valid || burst_end <= 4096);
        window: assert (!ar_valid || (windows[128] && windows[63:0] <= ar[31:0] && {ar[31:ROW], {ROW{1'b0}}} < windows[127:64]));
        claim_fits: assert (claim <= free);
        quiet_is_quiet: assert (!quiet || !(ar_valid || sbuf_asks || psum_asks));
        burst_seen: cover (ar_valid && ar[39:32] == 1);
        chip_seen: cover (sbuf_asks);
    end
endmodule
