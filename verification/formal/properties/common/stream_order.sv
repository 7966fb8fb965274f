// Nothing is lost, doubled or reordered between two streams.
//
// Data are numbered modulo CAPACITY as they enter and as they leave. Those with one number, any one, are
// remembered; since no more than CAPACITY are held, the one that leaves with this number is the one remembered.
// Nothing leaves that did not enter. What is held appears within LATENCY cycles; when there is room it is
// offered within LATENCY cycles (not asserted if PROMPT is 0: others come between).
module stream_order #(parameter WIDTH = 1, CAPACITY = 1, LATENCY = 1, PROMPT = 1) (
    input clk, rst,
    input i_valid, i_ready, input [WIDTH-1:0] i_data,
    input o_valid, o_ready, input [WIDTH-1:0] o_data,
    output reg [$clog2(CAPACITY+2)-1:0] held
);
    localparam BITS = CAPACITY > 1 ? $clog2(CAPACITY) : 1;
    (* anyconst *) wire [BITS-1:0] number;
    reg [BITS-1:0] entering, leaving;
    reg [WIDTH-1:0] remembered;
    reg known;  // Such a datum has entered. One that leaves unknown would be more than `held`.
    reg [$clog2(LATENCY+2)-1:0] hidden, closed;
    wire put = i_valid & i_ready, get = o_valid & o_ready;

    always @(posedge clk)
        if (rst) begin
            held <= 0; entering <= 0; leaving <= 0; known <= 0; hidden <= 0; closed <= 0;
        end else begin
            held <= held + put - get;
            if (put) entering <= entering == CAPACITY - 1 ? 0 : entering + 1;
            if (get) leaving <= leaving == CAPACITY - 1 ? 0 : leaving + 1;
            if (put && entering == number) begin remembered <= i_data; known <= 1; end
            hidden <= (held == 0 || o_valid || hidden > LATENCY) ? 0 : hidden + 1;
            closed <= (held == CAPACITY || i_ready || closed > LATENCY) ? 0 : closed + 1;
        end

    always @* if (!rst) begin
        nothing_invented: assert (!(o_valid && held == 0));
        within_capacity: assert (held <= CAPACITY);
        in_order: assert (!(o_valid && known && leaving == number && o_data != remembered));
        seen_leaving: cover (get && known && leaving == number);
    end
    generate if (PROMPT) always @* if (!rst) begin
        shown_in_time: assert (hidden <= LATENCY);
        open_in_time: assert (closed <= LATENCY);
    end endgenerate
endmodule
