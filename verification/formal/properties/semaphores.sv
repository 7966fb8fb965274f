// Semaphores: any one of them, chosen by the solver, equals a reference that adds and subtracts in plain
// arithmetic, whatever acquisition and updates come together; an update out of 0..255 changes nothing and is a
// fault of its engine, which stays until `clear`.
module semaphores #(parameter COUNT = 4, ENGINES = 3) (
    input clk, rst, clear, input [ENGINES-1:0] retires, input [63:0] retired, input acquire, input [27:0] acquired
);
    localparam ADD = 1, SUBTRACT = 2, SET = 3, MAX = 255;
    wire [8*COUNT-1:0] values;
    wire [ENGINES-1:0] fault;
    wire [135:0] fault_info;
    (* anyconst *) wire [5:0] one;
    dut_semaphores dut (.clk, .rst, .clear, .retires, .retired, .acquire, .acquired, .values, .fault, .fault_info);
    reset_once start (.clk, .rst);

    // The fields: two amounts that are acquired, two updates of the engine that retires.
    wire [5:0] taken0 = acquired[5:0], taken1 = acquired[19:14];
    wire [7:0] amount0 = acquired[13:6], amount1 = acquired[27:20];
    wire [5:0] updated0 = retired[37:32], updated1 = retired[53:48];
    wire [1:0] mode0 = retired[39:38], mode1 = retired[55:54];
    wire [7:0] by0 = retired[47:40], by1 = retired[63:56];
    wire retiring = |retires;

    function signed [15:0] changed(input signed [15:0] value, input [1:0] mode, input [7:0] by);
        changed = mode == ADD ? value + by : mode == SUBTRACT ? value - by : mode == SET ? by : value;
    endfunction
    function legal(input signed [15:0] value);
        legal = value >= 0 && value <= MAX;
    endfunction

    reg [7:0] value;
    reg failed;  // Some update of this semaphore was refused.
    wire signed [15:0] acquiring = (acquire && taken0 == one ? amount0 : 0) + (acquire && taken1 == one ? amount1 : 0);
    wire signed [15:0] after_acquire = {8'b0, value} - acquiring;
    wire signed [15:0] first = changed(after_acquire, retiring && updated0 == one ? mode0 : 0, by0);
    wire signed [15:0] after_first = legal(first) ? first : after_acquire;
    wire signed [15:0] second = changed(after_first, retiring && updated1 == one ? mode1 : 0, by1);
    wire signed [15:0] after_second = legal(second) ? second : after_first;
    always @(posedge clk) begin
        value <= rst || clear ? 0 : after_second;
        failed <= rst || clear ? 0 : failed || !legal(first) || !legal(second);
    end
    always @* begin
        assume (one < COUNT);
        assume ((retires & (retires - 1)) == 0);
        // Instructions name semaphores that exist; dispatch acquires what is there.
        assume (taken0 < COUNT && taken1 < COUNT && updated0 < COUNT && updated1 < COUNT);
        assume (after_acquire >= 0);
    end
    always @* if (!rst) begin
        no_update_lost: assert (values[8*one +: 8] == value);
        fault_shown: assert (!failed || fault != 0);
        overflow_seen: cover (failed);
        all_at_once_seen: cover (value == 3 && acquire && retiring && taken0 == one && taken1 == one && updated0 == one
                                 && updated1 == one && mode0 == ADD && mode1 == SUBTRACT && acquiring == 3);
    end
    // Exactly the engine whose update was refused is at fault.
    reg [ENGINES-1:0] earlier, blamed;
    reg refused, observed;
    always @(posedge clk) begin
        earlier <= rst || clear ? 0 : fault;
        blamed <= retires;
        refused <= !rst && !clear && (!legal(first) || !legal(second));
        observed <= !rst;
    end
    always @* if (!rst && observed) begin
        blame_right: assert (!refused || (fault & blamed) == blamed);
        blame_only: assert ((fault & ~earlier & ~blamed) == 0);
        blame_stays: assert ((earlier & ~fault) == 0);
    end
endmodule
