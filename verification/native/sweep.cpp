// Sweeps a pipelined unit over a space of inputs and compares every output with the referee.
//
// Reads what to do from standard input, one item a line:
//
//   operation fma|add|narrow|convert
//   format EXPONENT_BITS FRACTION_BITS BIAS HAS_INF LOW_ZERO_BITS PART     of the operands and the result, in the
//   integer BITS SIGNED                                 order of the operation's arguments (operations.hpp)
//   flag 0|1                  of the operation: skip, saturate
//   constant PORT VALUE       an input that keeps one value
//   axis PORT SHIFT BITS      an operand that is a field of the index
//   table PORT SHIFT COUNT FILE     the same, looked up in a file of COUNT 32-bit words
//   permute MULTIPLIER BITS   sample the space instead of walking through it
//   range BEGIN END           indices
//
// Prints JSON, one object a line: {"done": vectors} now and then, {"mismatch": words in hex} for the first ones,
// at last {"inputs": vectors, "mismatches": how many, "seconds": how long}.

#include "engine.hpp"
#include "operations.hpp"
#include "space.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

static const unsigned SHOWN_MISMATCHES = 5;
static const unsigned BATCHES_PER_REPORT = 1 << 14;

struct Request {
    std::string operation;
    std::vector<referee::Type> types;
    bool flag = false;
    std::vector<std::pair<std::string, uint32_t>> constants;
    Space space;
    uint64_t begin = 0, end = 0;
};

[[noreturn]] static void fail(const std::string& message) {
    std::fprintf(stderr, "%s\n", message.c_str());
    std::exit(2);
}

static Request read_request(std::istream& in) {
    Request request;
    std::string key;
    while (in >> key) {
        if (key == "operation") {
            in >> request.operation;
        } else if (key == "format") {
            referee::Format format{};
            in >> format.exponent_bits >> format.fraction_bits >> format.bias >> format.has_inf
               >> format.low_zero_bits >> format.part;
            request.types.push_back({true, format, {}});
        } else if (key == "integer") {
            referee::Integer integer{};
            in >> integer.bits >> integer.is_signed;
            request.types.push_back({false, {}, integer});
        } else if (key == "flag") {
            in >> request.flag;
        } else if (key == "constant") {
            std::string port;
            uint32_t value = 0;
            in >> port >> value;
            request.constants.emplace_back(port, value);
        } else if (key == "axis") {
            Axis axis{};
            unsigned bits = 0;
            in >> axis.port >> axis.shift >> bits;
            axis.mask = (uint64_t(1) << bits) - 1;
            request.space.axes.push_back(axis);
        } else if (key == "table") {
            Axis axis{};
            size_t count = 0;
            std::string path;
            in >> axis.port >> axis.shift >> count >> path;
            // A power of two may be followed by other fields; any other number is the last.
            axis.mask = count & (count - 1) ? ~uint64_t(0) : count - 1;
            axis.table.resize(count);
            std::ifstream file(path, std::ios::binary);
            if (!file.read(reinterpret_cast<char*>(axis.table.data()), std::streamsize(count * sizeof(uint32_t))))
                fail(path + " does not hold the table of " + axis.port);
            request.space.axes.push_back(axis);
        } else if (key == "permute") {
            unsigned bits = 0;
            in >> request.space.multiplier >> bits;
            request.space.mask = (uint64_t(1) << bits) - 1;
        } else if (key == "range") {
            in >> request.begin >> request.end;
        } else {
            fail("unknown item " + key);
        }
        if (!in) fail("bad " + key);
    }
    return request;
}

static size_t find_port(const Engine& engine, const std::string& name) {
    for (size_t port = 0; port < engine.fields().size(); ++port)
        if (engine.fields()[port].name == name) return port;
    fail("the unit has no input " + name);
}

// A batch on its way through the pipeline.
struct Flight {
    uint64_t index;
    size_t count;
    std::array<Batch, MAX_OPERANDS> operands;
    Batch expected;
};

template <class Operation>
static void sweep(const Request& request, const Operation& operation) {
    Engine engine;
    for (const auto& [name, value] : request.constants) {
        Batch values;
        values.fill(value);
        engine.set(find_port(engine, name), values);
    }
    constexpr size_t operands = Operation::OPERANDS;
    if (request.space.axes.size() != operands) fail("the operation has another number of operands");
    std::array<size_t, operands> ports;
    for (size_t i = 0; i < operands; ++i) ports[i] = find_port(engine, request.space.axes[i].port);

    std::vector<Flight> flights(LATENCY);
    const uint64_t count = request.end - request.begin, batches = (count + LANES - 1) / LANES;
    uint64_t mismatches = 0;
    const auto start = std::chrono::steady_clock::now();

    for (uint64_t step = 0; step < batches + LATENCY - 1; ++step) {
        if (step % BATCHES_PER_REPORT == 0) {
            std::printf("{\"done\": %llu}\n", (unsigned long long)(step * LANES));
            std::fflush(stdout);
        }
        if (step < batches) {
            Flight& flight = flights[step % LATENCY];
            flight.index = request.begin + step * LANES;
            flight.count = std::min<uint64_t>(LANES, request.end - flight.index);
            for (size_t i = 0; i < operands; ++i) {
                const Axis& axis = request.space.axes[i];
                for (size_t lane = 0; lane < LANES; ++lane)     // The last lanes of the last batch repeat an input.
                    flight.operands[i][lane] =
                        request.space.value(axis, flight.index + std::min(lane, flight.count - 1));
                engine.set(ports[i], flight.operands[i]);
            }
            for (size_t lane = 0; lane < LANES; ++lane) {
                Operands<operands> words;
                for (size_t i = 0; i < operands; ++i) words[i] = flight.operands[i][lane];
                flight.expected[lane] = operation(words);
            }
        }
        engine.cycle();
        if (step + 1 < LATENCY) continue;
        const Flight& flight = flights[(step + 1) % LATENCY];
        Batch found;
        engine.get(found);
        if (found == flight.expected) continue;
        for (size_t lane = 0; lane < flight.count; ++lane) {
            if (found[lane] == flight.expected[lane] || mismatches++ >= SHOWN_MISMATCHES) continue;
            std::printf("{\"mismatch\": {\"index\": %llu", (unsigned long long)(flight.index + lane));
            for (size_t i = 0; i < operands; ++i)
                std::printf(", \"%s\": \"0x%x\"", request.space.axes[i].port.c_str(), flight.operands[i][lane]);
            std::printf(", \"expected\": \"0x%x\", \"found\": \"0x%x\"}}\n", flight.expected[lane], found[lane]);
        }
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    std::printf("{\"inputs\": %llu, \"mismatches\": %llu, \"seconds\": %.3f}\n", (unsigned long long)count,
                (unsigned long long)mismatches, elapsed.count());
}

int main() {
    const Request request = read_request(std::cin);
    with_operation(request.operation, request.types, request.flag,
                   [&](const auto& operation) { sweep(request, operation); });
}
