// TensorEngine: control never deadlocks. SBUF and PSUM take a command after at most PATIENCE cycles of refusal and
// report the end of a load or matmul at most DELAY cycles after its last command. Then, as long as anything is
// under way, within LIMIT cycles a command goes out, an instruction completes or a fault is shown; and an
// instruction that is offered is taken, completed or refused likewise. Completions never outnumber instructions.
module tensor #(parameter PATIENCE = 1, DELAY = 3, LIMIT = 10) (
    input clk, rst, input [543:0] instruction, input i_valid, moving_ready, stationary_ready, psum_ready, loaded, written
);
    wire i_ready, complete, fault, idle, moving_valid, stationary_valid, psum_valid;
    wire [13:0] moving;
    wire [17:0] stationary;
    wire [7:0] psum;
    dut_tensor dut (
        .clk, .rst, .control__i__payload(instruction), .control__i__valid(i_valid), .control__i__ready(i_ready),
        .moving__ready(moving_ready), .moving_drains(1'b0), .stationary__ready(stationary_ready),
        .loaded, .psum__ready(psum_ready), .written, .control__complete(complete), .control__fault(fault),
        .control__idle(idle), .moving__payload(moving), .moving__valid(moving_valid),
        .stationary__payload(stationary), .stationary__valid(stationary_valid),
        .psum__payload(psum), .psum__valid(psum_valid));
    reset_once start (.clk, .rst);
    assume_stable #(.WIDTH(544)) offered (.clk, .rst, .valid(i_valid), .ready(i_ready), .data(instruction));
    // The memories: they take commands in the same cycle or refuse them, and count what they have to report.
    assume_at_most #(.LIMIT(PATIENCE)) patient (.clk, .rst, .waits(~(moving_ready & psum_ready)));
    assume_at_most #(.LIMIT(PATIENCE)) patient_load (.clk, .rst, .waits(~stationary_ready));
    reg [4:0] loads, matmuls, taken;
    wire take = i_valid & i_ready;
    wire load_ends = stationary_valid & stationary_ready & stationary[17];
    wire matmul_ends = psum_valid & psum_ready & psum[7];
    assume_at_most #(.LIMIT(DELAY)) prompt_load (.clk, .rst, .waits(loads != 0 & ~loaded));
    assume_at_most #(.LIMIT(DELAY)) prompt_matmul (.clk, .rst, .waits(matmuls != 0 & ~written));
    always @(posedge clk)
        if (rst) begin loads <= 0; matmuls <= 0; taken <= 0; end
        else begin
            loads <= loads + load_ends - loaded;
            matmuls <= matmuls + matmul_ends - written;
            taken <= taken + take - complete;
        end
    wire moves = (moving_valid & moving_ready) | (stationary_valid & stationary_ready) | complete | take;
    reg [$clog2(LIMIT+2)-1:0] still;
    always @(posedge clk) still <= rst || moves || fault || (idle && !i_valid) ? 0 : still > LIMIT ? still : still + 1;
    always @* if (!rst) begin
        assume (!(loaded && loads == 0) && !(written && matmuls == 0));
        progress: assert (still <= LIMIT);
        completes_what_it_took: assert (!(complete && taken == 0));
        idle_means_done: assert (!(idle && !fault && taken != 0));
        both_memories: assert ((moving_valid & moving_ready) == (psum_valid & psum_ready));
        matmul_seen: cover (matmul_ends);
        completion_seen: cover (complete && taken == 2);
    end
endmodule
