// Assumes that reset is high in the first cycle and never again.
module reset_once (input clk, rst);
    reg started = 0;
    always @(posedge clk) started <= 1;
    always @* assume (rst == !started);
endmodule
