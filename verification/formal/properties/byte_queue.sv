// ByteQueue of rows of 4: bytes leave in the order in which they came, each once, at the lane that was asked for;
// ends of copies stay where they were; the credit `free` is exact, so that nothing overflows.
module byte_queue #(parameter ROWS = 2) (
    input clk, rst,
    input [2:0] claim, input push, input [31:0] row, input [1:0] push_lane, input [2:0] push_count, input push_end,
    input [2:0] want, input [1:0] want_lane, input want_end, take
);
    localparam CAPACITY = 4 * ROWS, BITS = $clog2(CAPACITY);
    wire [BITS:0] free;
    wire [31:0] out;
    wire ready, mismatch, front_ends;
    wire [2:0] front;
    dut_byte_queue dut (
        .clk, .rst, .push__claim(claim), .push__valid(push), .push__piece({push_end, push_count, push_lane, row}),
        .push__free(free), .take__count(want), .take__lane(want_lane), .take__end(want_end), .take__take(take),
        .take__row(out), .take__ready(ready), .take__mismatch(mismatch), .take__front(front),
        .take__front_ends(front_ends));
    reset_once start (.clk, .rst);
    // Bytes are numbered modulo CAPACITY; those with one number, any one, are remembered.
    (* anyconst *) wire [BITS-1:0] number;
    reg [BITS-1:0] entering, leaving;
    reg [BITS:0] held, claimed;
    reg [7:0] remembered;
    reg end_remembered, known;
    wire [2:0] pushed = push ? push_count : 0, taken = take ? want : 0;
    wire [BITS-1:0] place = number - entering, offset = number - leaving;
    wire [1:0] lane_in = push_lane + place, lane_out = want_lane + offset;
    always @(posedge clk)
        if (rst) begin entering <= 0; leaving <= 0; held <= 0; claimed <= 0; known <= 0; end
        else begin
            entering <= entering + pushed; leaving <= leaving + taken;
            held <= held + pushed - taken; claimed <= claimed + claim - pushed;
            if (place < pushed) begin
                remembered <= row[8*lane_in +: 8]; known <= 1;
                end_remembered <= push_end && place == pushed - 1;
            end
        end
    always @* if (!rst) begin
        assume (claim <= 4 && claim <= free && pushed <= claimed + claim);
        assume (!push || (push_count >= 1 && push_count <= 4));
        assume (want >= 1 && want <= 4 && (!take || ready));
        credit: assert (free == CAPACITY - held - claimed);
        within_capacity: assert (held + claimed <= CAPACITY);
        no_invention: assert (!(ready && held < want));
        in_order: assert (!(ready && known && offset < want && out[8*lane_out +: 8] != remembered));
        end_kept: assert (!(ready && known && offset < want && end_remembered != (want_end && offset == want - 1)));
        answer: assert (!(ready && mismatch) && (held < want || ready || mismatch));
        front_held: assert (front <= held);
        wrap_seen: cover (take && known && offset == 3 && want == 4 && leaving[1:0] == 3);
        full_seen: cover (held == CAPACITY);
    end
endmodule
