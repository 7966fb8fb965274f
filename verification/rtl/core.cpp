// A compiled core with its memory, bus and host, as a shared library.
//
// Before each rising clock edge the outputs are looked at, after it the inputs are set.  Functions that
// can fail return a negative number; `trncore_error` then tells why.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "axi_memory.hpp"
#include "memory.hpp"
#include "pins.hpp"   // Written by model.py: Core, AxiPins, axi_pins, select_mutant, kTraceBytes.
#ifdef TRNCORE_WAVES
#include "verilated_fst_c.h"
#endif

namespace trncore {

constexpr int kFailed = -1;
constexpr unsigned kResetCycles = 4;
constexpr uint64_t kAnswerCycles = 10'000;   // For a register access; with stalls they take longer.

struct Simulation {
    Simulation(const Behaviour& behaviour_, const uint8_t* trace_mask, uint32_t mutant)
        : behaviour(behaviour_), memory(behaviour.seed), throttle(behaviour.bytes_per_cycle),
          random(~behaviour.seed) {
        context.randReset(2);
        context.randSeed(int(behaviour.seed % 0x7FFFFFFF) + 1);
#ifdef TRNCORE_WAVES
        context.traceEverOn(true);
#endif
        // The models of parts are made at the first evaluation.
        Verilated::threadContextp(&context);
        core = std::make_unique<Core>(&context, "core");
        select_mutant(*core, mutant);
        if (trace_mask) mask.assign(trace_mask, trace_mask + kTraceBytes);
        unsigned number = 0;
        for (const AxiPins& pins : axi_pins(*core))
            ports.emplace_back(pins, number++, memory, throttle, behaviour, windows, errors, silent);
        core->rst = 1;
        for (auto& port : ports) port.drive();
        core->csr_awvalid = core->csr_wvalid = core->csr_bready = core->csr_arvalid = core->csr_rready = 0;
        core->clk = 0;
        core->eval();
        for (unsigned i = 0; i < kResetCycles; ++i) clock();
        core->rst = 0;
        core->eval();
    }

    ~Simulation() {
        stop_waves();
        core->final();
    }

    // The edge; where both edges of the clock count, the other one is the next cycle's.
    void clock() {
        core->clk = !core->clk;
        core->eval();
        dump(1);
#ifndef TRNCORE_BOTH_EDGES
        core->clk = 0;
#endif
    }

    // One cycle; what `set` does to the inputs happens after the edge.
    template <class Set>
    void step(Set set) {
        throttle.tick();
        for (auto& port : ports) port.sample();
        record();
        clock();
        for (auto& port : ports) port.drive();
        set();
        core->eval();
        ++cycle;
        dump(0);
    }
    void step() { step([] {}); }

    void record() {
        if (mask.empty()) return;
        const uint8_t* word = reinterpret_cast<const uint8_t*>(&core->instruction_trace);
        uint8_t active = 0;
        for (unsigned i = 0; i < kTraceBytes; ++i) active |= word[i] & mask[i];
        if (active) {
            event_cycles.push_back(cycle);
            event_words.insert(event_words.end(), word, word + kTraceBytes);
        }
    }

    void pause() {
        while (random.chance(behaviour.stall)) step();
    }

    // Step until `flag` is high before an edge; returns the cycle of that edge.
    template <class Flag>
    uint64_t wait(Flag& flag, const char* what) {
        for (uint64_t i = 0; !flag; ++i) {
            if (i == kAnswerCycles)
                throw ProtocolError(std::string("csr, cycle ") + std::to_string(cycle) + ": no " + what);
            step();
        }
        return cycle;
    }

    uint8_t read(uint32_t address, uint32_t& data) {
        pause();
        step([&] { core->csr_arvalid = 1, core->csr_araddr = address; });
        wait(core->csr_arready, "arready");
        step([&] { core->csr_arvalid = 0; });
        pause();
        step([&] { core->csr_rready = 1; });
        wait(core->csr_rvalid, "rvalid");
        data = core->csr_rdata;
        uint8_t response = core->csr_rresp;
        step([&] { core->csr_rready = 0; });
        return response;
    }

    // The handshakes of AW and W; the cycle of the last one goes to `accepted`.
    uint8_t write(uint32_t address, uint32_t data, uint64_t& accepted) {
        pause();
        bool late_address = random.chance(behaviour.stall), late_data = !late_address && random.chance(behaviour.stall);
        bool address_done = false, data_done = false;
        step([&] {
            core->csr_awaddr = address, core->csr_wdata = data, core->csr_wstrb = 0xF;
            core->csr_awvalid = !late_address, core->csr_wvalid = !late_data;
        });
        for (uint64_t i = 0; !(address_done && data_done); ++i) {
            if (i == kAnswerCycles)
                throw ProtocolError("csr, cycle " + std::to_string(cycle) + ": no awready or wready");
            address_done |= core->csr_awvalid && core->csr_awready;
            data_done |= core->csr_wvalid && core->csr_wready;
            accepted = cycle;
            bool go = !random.chance(behaviour.stall);
            step([&] {
                core->csr_awvalid = !address_done && (core->csr_awvalid || go);
                core->csr_wvalid = !data_done && (core->csr_wvalid || go);
            });
        }
        pause();
        step([&] { core->csr_bready = 1; });
        wait(core->csr_bvalid, "bvalid");
        uint8_t response = core->csr_bresp;
        step([&] { core->csr_bready = 0; });
        return response;
    }

#ifdef TRNCORE_WAVES
    void start_waves(const char* path) {
        waves = std::make_unique<VerilatedFstC>();
        core->trace(waves.get(), 99);
        waves->open(path);
        dump(0);
    }
    void stop_waves() {
        if (waves) waves->close();
        waves.reset();
    }
    // Two times a cycle: an even one before the edge, an odd one after it.
    void dump(unsigned after_edge) {
        if (waves) waves->dump(2 * cycle + after_edge);
    }
    std::unique_ptr<VerilatedFstC> waves;
#else
    void stop_waves() {}
    void dump(unsigned) {}
#endif

    Behaviour behaviour;
    VerilatedContext context;
    std::unique_ptr<Core> core;
    Memory memory;
    Throttle throttle;
    Random random;
    std::vector<Region> windows, errors, silent;
    std::vector<AxiMemory<AxiPins>> ports;
    std::vector<uint8_t> mask;   // Bits of the trace port that tell of an event; empty: nothing is recorded.
    std::vector<uint64_t> event_cycles;
    std::vector<uint8_t> event_words;
    uint64_t cycle = 0;
    std::string error;

    template <class Body>
    int guarded(Body body) {
        try {
            return body();
        } catch (const std::exception& caught) {
            error = caught.what();
            return kFailed;
        }
    }
};

}  // namespace trncore

using trncore::Simulation;

extern "C" {

Simulation* trncore_new(const trncore::Behaviour* behaviour, const uint8_t* trace_mask, uint32_t mutant) {
    return new Simulation(*behaviour, trace_mask, mutant);
}
void trncore_delete(Simulation* s) { delete s; }
const char* trncore_error(const Simulation* s) { return s->error.c_str(); }
uint64_t trncore_cycle(const Simulation* s) { return s->cycle; }

void trncore_map(Simulation* s, uint64_t base, uint64_t length, uint8_t* data, int writable) {
    s->memory.map(base, length, data, writable);
}
void trncore_window(Simulation* s, const trncore::Region* r) { s->windows.push_back(*r); }
void trncore_failing(Simulation* s, const trncore::Region* r) { s->errors.push_back(*r); }
void trncore_silent(Simulation* s, const trncore::Region* r) { s->silent.push_back(*r); }
// From now on there are neither failing nor silent regions; what was kept silent is answered.
void trncore_heal(Simulation* s) {
    s->errors.clear();
    s->silent.clear();
    for (auto& port : s->ports) port.heal();
}

// Register access; returns the response.
int trncore_read(Simulation* s, uint32_t address, uint32_t* data) {
    return s->guarded([&] { return s->read(address, *data); });
}
int trncore_write(Simulation* s, uint32_t address, uint32_t data, uint64_t* accepted) {
    return s->guarded([&] { return s->write(address, data, *accepted); });
}

// Simulate up to `cycles`; returns 1 when the interrupt is high before an edge, 0 when they are over.
int trncore_run(Simulation* s, uint64_t cycles, int until_interrupt) {
    return s->guarded([&] {
        for (uint64_t i = 0; i < cycles; ++i) {
            if (until_interrupt && s->core->interrupt_line) return 1;
            s->step();
        }
        return 0;
    });
}

uint64_t trncore_events(const Simulation* s, const uint64_t** cycles, const uint8_t** words) {
    *cycles = s->event_cycles.data();
    *words = s->event_words.data();
    return s->event_cycles.size();
}

#ifdef TRNCORE_WAVES
void trncore_start_waves(Simulation* s, const char* path) { s->start_waves(path); }
void trncore_stop_waves(Simulation* s) { s->stop_waves(); }
#endif

}  // extern "C"
