// Masters that break rules of AXI in front of the memory model: each must be caught, a good one must not.
#include <cstdio>
#include <functional>

#include "axi_memory.hpp"

using namespace trncore;

// Ports of a bus of 8 bytes, in the types in which Verilator keeps them.
struct Signals {
    uint8_t arready = 0, arvalid = 0, arid = 0, arlen = 0, arsize = 3, arburst = 1, arlock = 0;
    uint8_t awready = 0, awvalid = 0, awid = 0, awlen = 0, awsize = 3, awburst = 1, awlock = 0;
    uint8_t wready = 0, wvalid = 0, wlast = 0, wstrb = 0;
    uint8_t rready = 0, rvalid = 0, rid = 0, rresp = 0, rlast = 0, bready = 0, bvalid = 0, bid = 0, bresp = 0;
    uint64_t araddr = 0, awaddr = 0, wdata = 0, rdata = 0;
};
struct Pins {
    static constexpr unsigned kDataBytes = 8, kIds = 4;
    uint8_t &arready, &arvalid, &arid, &arlen, &arsize, &arburst, &arlock;
    uint8_t &awready, &awvalid, &awid, &awlen, &awsize, &awburst, &awlock, &wready, &wvalid, &wlast, &wstrb;
    uint8_t &rready, &rvalid, &rid, &rresp, &rlast, &bready, &bvalid, &bid, &bresp;
    uint64_t &araddr, &awaddr, &wdata, &rdata;
    explicit Pins(Signals& s)
        : arready(s.arready), arvalid(s.arvalid), arid(s.arid), arlen(s.arlen), arsize(s.arsize),
          arburst(s.arburst), arlock(s.arlock), awready(s.awready), awvalid(s.awvalid), awid(s.awid),
          awlen(s.awlen), awsize(s.awsize), awburst(s.awburst), awlock(s.awlock), wready(s.wready),
          wvalid(s.wvalid), wlast(s.wlast), wstrb(s.wstrb), rready(s.rready), rvalid(s.rvalid), rid(s.rid),
          rresp(s.rresp), rlast(s.rlast), bready(s.bready), bvalid(s.bvalid), bid(s.bid), bresp(s.bresp),
          araddr(s.araddr), awaddr(s.awaddr), wdata(s.wdata), rdata(s.rdata) {}
};

// Run `master(signals, cycle)` for some cycles and tell what the memory said, "" for nothing.
std::string run(double stall, const std::function<void(Signals&, int)>& master) {
    Behaviour behaviour{stall, 1, 1, 1, 0};
    Memory memory(1);
    Throttle throttle(0);
    std::vector<Region> windows{{0x1000, 0x3000, 1, 1}}, none;
    Signals signals;
    AxiMemory<Pins> port(Pins(signals), 0, memory, throttle, behaviour, windows, none, none);
    try {
        for (int cycle = 0; cycle < 40; ++cycle) {
            master(signals, cycle);
            port.sample();
            port.drive();
        }
    } catch (const ProtocolError& error) {
        return error.what();
    }
    return "";
}

int main() {
    auto read = [](Signals& s, int cycle) {   // Two beats from 0x1008 on, asked for in cycle 3.
        s.araddr = 0x1008, s.arlen = 1, s.rready = 1;
        s.arvalid = cycle == 3;
    };
    auto write = [](Signals& s, int cycle) {
        s.awaddr = 0x2004, s.awlen = 1, s.bready = 1;
        s.awvalid = cycle == 3;
        s.wvalid = cycle == 3 || cycle == 4;
        s.wstrb = cycle == 3 ? 0xF0 : 0x0F;
        s.wlast = cycle == 4;
    };
    struct Case {
        const char* expected;
        double stall;
        std::function<void(Signals&, int)> master;
    };
    const Case cases[] = {
        {"", 0, read},
        {"", 0, write},
        {"not INCR", 0, [&](Signals& s, int c) { read(s, c); s.arburst = 2; }},
        {"not the bus width", 0, [&](Signals& s, int c) { read(s, c); s.arsize = 2; }},
        {"lock is set", 0, [&](Signals& s, int c) { write(s, c); s.awlock = 1; }},
        {"crosses 4096 bytes", 0, [&](Signals& s, int c) { read(s, c); s.araddr = 0x1FF8; }},
        {"read outside every window", 0, [&](Signals& s, int c) { read(s, c); s.araddr = 0xF00; }},
        {"write outside every window", 0, [&](Signals& s, int c) { write(s, c); s.awaddr = 0x4004; }},
        {"wlast is at the wrong beat", 0, [&](Signals& s, int c) { write(s, c); s.wlast = 0; }},
        {"wstrb is set below awaddr", 0, [&](Signals& s, int c) { write(s, c); if (c == 3) s.wstrb = 0xFF; }},
        {"valid fell before the handshake", 0.97, [&](Signals& s, int c) { read(s, c); }},
        {"changed before the handshake", 0.97, [&](Signals& s, int c) {
             read(s, c); s.arvalid = c >= 3; s.araddr = 0x1008 + 8 * (c & 1); }},
        {"w changed before the handshake", 0.97, [&](Signals& s, int c) {
             write(s, c); s.awvalid = 0; s.wvalid = c >= 3; s.wdata = c; }},
    };
    int wrong = 0;
    for (const Case& item : cases) {
        std::string said = run(item.stall, item.master);
        bool right = *item.expected ? said.find(item.expected) != std::string::npos : said.empty();
        if (!right) std::printf("expected '%s', got '%s'\n", item.expected, said.c_str());
        wrong += !right;
    }
    return wrong;
}
