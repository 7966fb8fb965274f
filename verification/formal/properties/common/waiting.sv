// How long something has been true without a break; as an assertion, and as an assumption about the environment.
module waits_at_most #(parameter LIMIT = 1) (input clk, rst, waits);
    reg [$clog2(LIMIT+2)-1:0] cycles;
    always @(posedge clk) cycles <= (rst || !waits) ? 0 : cycles > LIMIT ? cycles : cycles + 1;
    always @* if (!rst) begin
        in_time: assert (cycles <= LIMIT);
        seen_waiting: cover (cycles == 1);
    end
endmodule

module assume_at_most #(parameter LIMIT = 1) (input clk, rst, waits);
    reg [$clog2(LIMIT+2)-1:0] cycles;
    always @(posedge clk) cycles <= (rst || !waits) ? 0 : cycles + 1;
    always @* if (!rst) assume (!(waits && cycles == LIMIT));
endmodule

// Assumes that what is offered stays offered, unchanged, until it is taken.
module assume_stable #(parameter WIDTH = 1) (
    input clk, rst, input valid, ready, input [WIDTH-1:0] data
);
    reg stalled;
    reg [WIDTH-1:0] offered;
    always @(posedge clk) begin
        stalled <= valid & ~ready & ~rst;
        offered <= data;
    end
    always @* if (!rst && stalled) assume (valid && data == offered);
endmodule
