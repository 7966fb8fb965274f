// InFlight: never more than CAPACITY instructions and never below none; those that are no NOP leave only when the
// engine has completed as many.
module in_flight #(parameter CAPACITY = 64) (
    input clk, rst, input push, nop, complete, retire
);
    localparam BITS = $clog2(CAPACITY + 1);
    wire [64:0] entry = {nop, 64'b0}, oldest;
    wire ready, empty, full, present;
    wire [BITS-1:0] level, completed;
    dut_in_flight dut (.clk, .rst, .clear(1'b0), .push, .entry, .complete, .ready, .oldest, .retire, .empty, .full,
                       .level, .completed, .present);
    reset_once start (.clk, .rst);
    reg [BITS-1:0] inside;
    reg [BITS-1:0] unretired;  // Completed and not retired.
    reg [BITS-1:0] working;  // No NOPs, not completed.
    wire leaves = retire & ready, works = ~oldest[64];
    always @(posedge clk)
        if (rst) begin inside <= 0; unretired <= 0; working <= 0; end
        else begin
            inside <= inside + push - leaves;
            unretired <= unretired + complete - (leaves & works);
            working <= working + (push & ~nop) - complete;
        end
    always @* if (!rst) begin
        assume (!(push && full) && !(retire && !ready) && !(complete && working == 0));
    end
    always @* if (!rst) begin
        empty_right: assert (empty == (inside == 0));
        full_right: assert (full == (inside == CAPACITY));
        within_capacity: assert (inside <= CAPACITY);
        never_below_none: assert (!(ready && inside == 0));
        no_early_retirement: assert (!(ready && works && unretired == 0 && !complete));
        // What it knows inside.
        same_level: assert (level == inside);
        same_completed: assert (completed == unretired);
        present_is_there: assert (!present || inside != 0);
        retirement_seen: cover (inside == 3 && complete && leaves);
    end
endmodule
