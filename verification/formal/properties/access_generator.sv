// AccessGenerator: no access that it calls legal leaves its window or its memory, none in DRAM crosses 4 KiB or is
// longer than 16 beats, none on chip leaves its row; an access that waits does not change.
module access_generator #(parameter ROW = 3, BEATS = 16, SBUF = 64, PSUM = 16, WRITE = 1) (
    input clk, rst, input [341:0] job, input job_valid, o_ready
);
    (* anyconst *) wire [129:0] windows;
    wire job_ready, o_valid;
    wire [87:0] access;
    dut_access_generator dut (.clk, .rst, .i__payload(job), .i__valid(job_valid), .i__ready(job_ready),
                              .o__payload(access), .o__valid(o_valid), .o__ready(o_ready), .windows);
    reset_once start (.clk, .rst);
    stream_stable #(.WIDTH(88)) stable (.clk, .rst, .valid(o_valid), .ready(o_ready), .data(access));
    localparam DRAM = 0;
    wire [1:0] space = access[1:0];
    wire lanes = access[5], legal = access[87];
    wire [63:0] address = access[69:6];
    wire [7:0] count = access[85:78];
    wire [64:0] address_end = address + count;
    wire shows = o_valid && legal && !rst;
    always @* begin
        // The decoder's contract: a space that exists, elements of up to 4 bytes, no empty job.
        assume (job[1:0] != 3 && job[339:338] != 3 && job[81:74] != 0);
        assume (job[1:0] != DRAM || (!job[340] && job[81:74] == 1));
        assume (job[145:114] != 0 && job[209:178] != 0 && job[273:242] != 0 && job[337:306] != 0);
        if (shows && space == DRAM) begin
            permitted: assert (WRITE ? windows[129] : windows[128]);
            in_window: assert (windows[63:0] <= address && address_end <= windows[127:64]);
            on_bus: assert (address_end <= 65'h1_0000_0000);
            in_page: assert (address[11:0] + count <= 4096);
            in_burst: assert (address[ROW-1:0] + count <= BEATS << ROW);
            burst_seen: cover (count > 8);
        end
        if (shows && space != DRAM) begin
            in_memory: assert (address < (space == 1 ? SBUF : PSUM));
            in_row: assert (lanes ? count <= 1 << ROW : address[ROW-1:0] + count <= 1 << ROW);
            row_seen: cover (count == 8);
        end
    end
endmodule
