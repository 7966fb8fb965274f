// RoundRobin: who is granted asks, a choice stands until it is served, and between two services of anyone each
// other one that asks all the time is served once: nobody starves.
module round_robin #(parameter COUNT = 3) (
    input clk, rst, input [COUNT-1:0] requests, input served
);
    localparam BITS = COUNT > 1 ? $clog2(COUNT) : 1;
    wire [BITS-1:0] grant;
    (* anyconst *) wire [BITS-1:0] one;
    reg [COUNT-1:0] waiting;
    reg stands;
    reg [BITS-1:0] choice;
    reg [$clog2(COUNT+1)-1:0] passed;  // Services of others since `one` began to ask.
    wire any = |requests;
    dut_round_robin dut (.clk, .rst, .requests, .served, .grant);
    reset_once start (.clk, .rst);
    always @* begin
        assume (one < COUNT);
        if (!rst) assume ((waiting & ~requests) == 0);  // Requests stay until they are served.
    end
    always @(posedge clk)
        if (rst) begin
            waiting <= 0; stands <= 0; passed <= 0;
        end else begin
            waiting <= requests & ~(served ? {{COUNT-1{1'b0}}, 1'b1} << grant : {COUNT{1'b0}});
            stands <= any & ~served;
            choice <= grant;
            if (!requests[one] || (served && grant == one)) passed <= 0;
            else if (served) passed <= passed + 1;
        end
    always @* if (!rst) begin
        granted_asks: assert (!any || (grant < COUNT && requests[grant]));
        choice_stands: assert (!stands || grant == choice);
        no_starvation: assert (passed < COUNT);
        longest_wait_seen: cover (passed == COUNT - 1);
    end
endmodule
