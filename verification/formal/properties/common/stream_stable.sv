// What is offered stays offered, unchanged, until it is taken.
module stream_stable #(parameter WIDTH = 1) (
    input clk, rst, input valid, ready, input [WIDTH-1:0] data
);
    reg stalled;
    reg [WIDTH-1:0] offered;
    always @(posedge clk) begin
        stalled <= valid & ~ready & ~rst;
        offered <= data;
    end
    always @* if (!rst && stalled) begin
        still_valid: assert (valid);
        unchanged: assert (data == offered);
        seen_stalled: cover (valid);
    end
endmodule
