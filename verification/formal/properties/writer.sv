// Writer on the bus: addresses and beats stay offered, addresses lie in a window that permits writing, bursts do
// not cross 4 KiB, and no more are unanswered than CREDIT.
module writer #(parameter CREDIT = 128, ROW = 3, WAITING = 8) (
    input clk, rst,
    input [341:0] job, input job_valid, input aw_ready, w_ready, input [1:0] b, input b_valid,
    input sbuf_ready, psum_ready, input take_ready, take_mismatch, abandon, may_answer
);
    (* anyconst *) wire [129:0] windows;
    wire job_ready, aw_valid, w_valid, b_ready, take_take, fault, quiet, finished, answered;
    wire [39:0] aw;
    wire [72:0] w;
    wire [3:0] take_count;
    dut_writer dut (
        .clk, .rst, .i__payload(job), .i__valid(job_valid), .i__ready(job_ready),
        .bus__aw__payload(aw), .bus__aw__valid(aw_valid), .bus__aw__ready(aw_ready),
        .bus__w__payload(w), .bus__w__valid(w_valid), .bus__w__ready(w_ready),
        .bus__b__payload(b), .bus__b__valid(b_valid), .bus__b__ready(b_ready),
        .sbuf__request__ready(sbuf_ready), .psum__request__ready(psum_ready),
        .windows, .take__row(64'b0), .take__ready(take_ready), .take__mismatch(take_mismatch),
        .take__front(4'd0), .take__front_ends(1'b0), .take__take(take_take), .take__count(take_count),
        .abandon, .may_answer, .fault, .quiet, .finished, .answered);
    reset_once start (.clk, .rst);
    stream_stable #(.WIDTH(40)) aw_stable (.clk, .rst, .valid(aw_valid), .ready(aw_ready), .data(aw));
    stream_stable #(.WIDTH(73)) w_stable (.clk, .rst, .valid(w_valid), .ready(w_ready), .data(w));
    wire [12:0] burst_end = {aw[11:ROW], {ROW{1'b0}}} + ((aw[39:32] + 13'd1) << ROW);
    wire ends = w_valid & w_ready & w[72];
    // Bursts whose last beat went out, and are not answered: the slave answers no others.
    reg [$clog2(CREDIT+2)-1:0] unanswered;
    wire answers = b_valid & b_ready, asks = aw_valid & aw_ready;
    reg [$clog2(CREDIT+2)-1:0] open_;
    always @(posedge clk) begin
        open_ <= rst ? 0 : open_ + asks - answers;
        unanswered <= rst ? 0 : unanswered + ends - answers;
    end
    always @* if (!rst) begin
        // The decoder's contract: a space that exists, elements of up to 4 bytes, no empty job.
        assume (job[1:0] != 3 && job[339:338] != 3 && job[81:74] != 0);
        assume (job[1:0] != 0 || (!job[340] && job[81:74] == 1));
        assume (job[145:114] != 0 && job[209:178] != 0 && job[273:242] != 0 && job[337:306] != 0);
        assume (windows[127:64] <= 64'h1_0000_0000);
        assume (!(b_valid && (open_ == 0 || unanswered == 0)));
        assume (!(take_ready && take_mismatch));
        page: assert (!aw_valid || burst_end <= 4096);
        window: assert (!aw_valid || (windows[129] && windows[63:0] <= aw[31:0] && aw[31:0] < windows[127:64]));
        credit: assert (open_ <= CREDIT);
        burst_seen: cover (aw_valid && aw[39:32] == 1);
        answer_seen: cover (answers);
    end
endmodule
