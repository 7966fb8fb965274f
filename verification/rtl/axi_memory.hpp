// AXI4 memory behind one port: answers its bursts and checks the master's protocol (IHI 0022).
//
// Behaves as verification/env/axi_memory.py; with a fixed latency and no stalls, cycle for cycle.
#pragma once
#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

#include "memory.hpp"
#include "random.hpp"

namespace trncore {

struct Region {
    uint64_t base, limit;
    uint32_t read, write;

    bool covers(uint64_t address, uint64_t length, bool for_write) const {
        return (for_write ? write : read) && base <= address && address + length <= limit;
    }
    bool touches(uint64_t address, uint64_t length, bool for_write) const {
        return (for_write ? write : read) && address < limit && base < address + length;
    }
};

// How memory and bus behave.
struct Behaviour {
    double stall;             // Probability that a ready or valid of ours stays low in a cycle.
    uint64_t seed;
    uint64_t latency_low, latency_high;
    int64_t bytes_per_cycle;  // Over all ports, reads and writes together; 0: no limit.
};

struct ProtocolError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Bandwidth that several ports share.
class Throttle {
public:
    explicit Throttle(int64_t rate) : rate_(rate), credit_(rate) {}
    // What an idle cycle leaves over is lost.
    void tick() { credit_ = std::min(credit_ + rate_, rate_); }
    bool open() const { return !rate_ || credit_ > 0; }
    void take(int64_t length) { credit_ -= length; }

private:
    int64_t rate_, credit_;
};

// `Pins` refers to the model's ports by their AXI names, and has kDataBytes and kIds.
template <class Pins>
class AxiMemory {
public:
    static constexpr uint64_t kBytes = Pins::kDataBytes;

    AxiMemory(Pins pins, unsigned number, Memory& memory, Throttle& throttle, const Behaviour& behaviour,
              const std::vector<Region>& windows, const std::vector<Region>& errors,
              const std::vector<Region>& silent)
        : pins_(pins), number_(number), memory_(memory), throttle_(throttle), behaviour_(behaviour),
          windows_(windows), errors_(errors), silent_(silent),
          random_(behaviour.seed * 0x9E3779B97F4A7C15u + number + 1) {}

    // Answer the bursts that were kept silent.
    void heal() {
        for (auto& queue : reads_) for (auto& burst : queue) burst.silent = false;
        for (auto& queue : responses_) for (auto& burst : queue) burst.silent = false;
        for (auto& burst : writes_) burst.silent = false;
    }

    // Look at the outputs before a clock edge; `drive` then sets the inputs after it.
    void sample() {
        check_held();
        if (next_.arready && pins_.arvalid) take_read();
        if (next_.awready && pins_.awvalid) take_write();
        if (next_.wready && pins_.wvalid) take_data();
        bool read_busy = next_.rvalid, response_busy = next_.bvalid && !pins_.bready;
        if (read_busy && pins_.rready) {
            end_beat();
            read_busy = false;
        }
        ++cycle_;
        next_.arready = !stalled();
        next_.awready = !stalled();
        next_.wready = throttle_.open() && !stalled();
        if (!read_busy) offer_read();
        if (!response_busy) offer_response();
    }

    void drive() {
        pins_.arready = next_.arready;
        pins_.awready = next_.awready;
        pins_.wready = next_.wready;
        pins_.rvalid = next_.rvalid;
        pins_.rid = next_.rid;
        pins_.rresp = next_.rresp;
        pins_.rlast = next_.rlast;
        std::memcpy(&pins_.rdata, next_.rdata.data(), kBytes);
        pins_.bvalid = next_.bvalid;
        pins_.bid = next_.bid;
        pins_.bresp = next_.bresp;
    }

private:
    static constexpr uint64_t kPage = 4096;   // A burst must not cross a multiple of this.
    static constexpr uint8_t kIncr = 1, kOkay = 0, kSlvErr = 2;
    static constexpr double kInterleave = 0.1;
    static constexpr uint64_t kOutstanding = 4096;   // More is a master that has lost count.

    using Strobes = std::bitset<kBytes>;

    struct Beat {
        std::array<uint8_t, kBytes> data;
        Strobes strobes;
        bool last;
    };
    struct Burst {
        uint64_t address, due = 0;
        unsigned id, beats, beat = 0;
        bool error = false, silent = false;
        std::vector<Beat> data{};
    };
    struct Inputs {
        uint8_t arready = 0, awready = 0, wready = 0, rvalid = 0, rresp = 0, rlast = 0, bvalid = 0, bresp = 0;
        unsigned rid = 0, bid = 0;
        std::array<uint8_t, kBytes> rdata{};
    };
    // What the master must keep until the handshake.
    struct Payload {
        bool held = false;
        uint64_t id = 0, address = 0, length = 0;
        std::array<uint8_t, kBytes> data{};
        Strobes strobes{};
        bool operator==(const Payload& other) const {
            return id == other.id && address == other.address && length == other.length &&
                   data == other.data && strobes == other.strobes;
        }
    };

    void require(bool condition, const char* text) const {
        if (!condition)
            throw ProtocolError("axi" + std::to_string(number_) + ", cycle " + std::to_string(cycle_) + ": " + text);
    }

    bool stalled() { return random_.chance(behaviour_.stall); }

    uint64_t latency() {
        return behaviour_.latency_low +
               (behaviour_.latency_high > behaviour_.latency_low
                    ? random_.below(behaviour_.latency_high - behaviour_.latency_low + 1) : 0);
    }

    void check_held() {
        Payload read{false, pins_.arid, pins_.araddr, pins_.arlen};
        Payload write{false, pins_.awid, pins_.awaddr, pins_.awlen};
        Payload data;
        if (pins_.wvalid) {
            data.id = pins_.wlast;
            data.strobes = strobes();
            std::memcpy(data.data.data(), &pins_.wdata, kBytes);
        }
        hold(read_held_, read, pins_.arvalid, next_.arready, "ar");
        hold(write_held_, write, pins_.awvalid, next_.awready, "aw");
        hold(data_held_, data, pins_.wvalid, next_.wready, "w");
    }

    void hold(Payload& held, const Payload& now, bool valid, bool ready, const char* channel) {
        if (held.held && !(valid && held == now))
            require(false, (std::string(channel) + (valid ? " changed" : "valid fell") +
                            " before the handshake").c_str());
        held = now;
        held.held = valid && !ready;
    }

    void check_window(uint64_t address, uint64_t length, bool write) const {
        if (std::none_of(windows_.begin(), windows_.end(),
                         [&](const Region& w) { return w.covers(address, length, write); }))
            require(false, (std::string(write ? "write" : "read") + " outside every window at " +
                            std::to_string(address)).c_str());
    }

    Burst burst(unsigned id, uint64_t address, unsigned length, unsigned size, unsigned kind, unsigned lock,
                bool write) const {
        require(kind == kIncr, "a burst is not INCR");
        require(uint64_t(1) << size == kBytes, "a burst's size is not the bus width");
        require(!lock, "lock is set");
        uint64_t end = address - address % kBytes + (length + 1) * kBytes;
        require(address / kPage == (end - 1) / kPage, "a burst crosses 4096 bytes");
        // Of a read, the first and the last byte that the addresses name; strobes tell for a write.
        if (!write) {
            check_window(address, 1, false);
            check_window(std::max(address, end - kBytes), 1, false);
        }
        Burst result{address, 0, id, length + 1};
        auto touched = [&](const std::vector<Region>& regions) {
            return std::any_of(regions.begin(), regions.end(), [&](const Region& r) {
                return r.touches(address, end - address, write); });
        };
        result.error = touched(errors_);
        result.silent = touched(silent_);
        return result;
    }

    void take_read() {
        Burst b = burst(pins_.arid, pins_.araddr, pins_.arlen, pins_.arsize, pins_.arburst, pins_.arlock, false);
        b.due = cycle_ + latency();
        require(reads_[b.id].size() < kOutstanding, "too many reads outstanding");
        reads_[b.id].push_back(std::move(b));
    }

    void take_write() {
        writes_.push_back(burst(pins_.awid, pins_.awaddr, pins_.awlen, pins_.awsize, pins_.awburst, pins_.awlock,
                                true));
        require(writes_.size() < kOutstanding, "too many writes outstanding");
        match();
    }

    Strobes strobes() const {
        std::array<uint8_t, (kBytes + 7) / 8> bytes;
        std::memcpy(bytes.data(), &pins_.wstrb, bytes.size());
        Strobes result;
        for (uint64_t i = 0; i < bytes.size(); ++i) result |= Strobes(bytes[i]) << 8 * i;
        return result;
    }

    void take_data() {
        throttle_.take(kBytes);
        Beat beat{{}, strobes(), bool(pins_.wlast)};
        std::memcpy(beat.data.data(), &pins_.wdata, kBytes);
        beats_.push_back(beat);
        match();
    }

    // Give W beats to the bursts in order.
    void match() {
        while (!writes_.empty() && !beats_.empty()) {
            Burst& b = writes_.front();
            const Beat& beat = beats_.front();
            uint64_t address = b.address - b.address % kBytes + b.beat * kBytes;
            ++b.beat;
            require(beat.last == (b.beat == b.beats), "wlast is at the wrong beat");
            uint64_t below = b.address > address ? b.address - address : 0;
            uint64_t low = 0, high = kBytes - 1;
            while (low < kBytes && !beat.strobes[low]) ++low;
            while (high > 0 && !beat.strobes[high]) --high;
            require(low >= below, "wstrb is set below awaddr");
            if (low < kBytes) {
                check_window(address + low, high - low + 1, true);
            }
            b.data.push_back(beat);
            beats_.pop_front();
            if (b.beat == b.beats) {
                b.due = cycle_ + latency();
                responses_[b.id].push_back(std::move(b));
                writes_.pop_front();
            }
        }
    }

    // The ID whose oldest burst may be answered now, or kIds: without stalls the one that has been due
    // longest, else any.
    unsigned choose(const std::array<std::deque<Burst>, Pins::kIds>& queues) {
        unsigned found = Pins::kIds, count = 0;
        for (unsigned id = 0; id < Pins::kIds; ++id) {
            if (queues[id].empty() || queues[id].front().due > cycle_ || queues[id].front().silent) continue;
            ++count;
            if (found == Pins::kIds ||
                (behaviour_.stall > 0 ? random_.below(count) == 0
                                      : queues[id].front().due < queues[found].front().due))
                found = id;
        }
        return found;
    }

    void end_beat() {
        Burst& b = reads_[reading_].front();
        if (++b.beat == b.beats) {
            reads_[reading_].pop_front();
            reading_ = Pins::kIds;
        }
    }

    void offer_read() {
        bool offered = false;
        if (throttle_.open() && !stalled()) {
            if (reading_ == Pins::kIds || random_.chance(behaviour_.stall > 0 ? kInterleave : 0))
                if (unsigned id = choose(reads_); id < Pins::kIds) reading_ = id;
            offered = reading_ < Pins::kIds;
        }
        if (!offered) {
            if (next_.rvalid) withhold_read();
            return;
        }
        throttle_.take(kBytes);
        const Burst& b = reads_[reading_].front();
        memory_.read(b.address - b.address % kBytes + b.beat * kBytes, next_.rdata.data(), kBytes);
        next_.rvalid = 1;
        next_.rid = b.id;
        next_.rresp = b.error ? kSlvErr : kOkay;
        next_.rlast = b.beat + 1 == b.beats;
    }

    // A valid that falls leaves a random payload.
    void withhold_read() {
        next_.rvalid = 0;
        next_.rid = random_.below(Pins::kIds);
        next_.rresp = random_.below(4);
        next_.rlast = random_.below(2);
        random_.fill(next_.rdata.data(), kBytes);
    }

    void offer_response() {
        unsigned id = choose(responses_);
        if (id == Pins::kIds || stalled()) {
            if (next_.bvalid) {
                next_.bvalid = 0;
                next_.bid = random_.below(Pins::kIds);
                next_.bresp = random_.below(4);
            }
            return;
        }
        const Burst& b = responses_[id].front();
        if (!b.error) {
            uint64_t address = b.address - b.address % kBytes;
            for (const Beat& beat : b.data) {
                if (beat.strobes.all())
                    memory_.write(address, beat.data.data(), kBytes);
                else
                    for (uint64_t i = 0; i < kBytes; ++i)
                        if (beat.strobes[i]) memory_.write(address + i, &beat.data[i], 1);
                address += kBytes;
            }
        }
        next_.bvalid = 1;
        next_.bid = id;
        next_.bresp = b.error ? kSlvErr : kOkay;
        responses_[id].pop_front();
    }

    Pins pins_;
    unsigned number_;
    Memory& memory_;
    Throttle& throttle_;
    const Behaviour& behaviour_;
    const std::vector<Region>&windows_, &errors_, &silent_;
    Random random_;
    uint64_t cycle_ = 0;
    Inputs next_;
    Payload read_held_, write_held_, data_held_;
    std::array<std::deque<Burst>, Pins::kIds> reads_, responses_;
    unsigned reading_ = Pins::kIds;   // ID whose burst has the R channel.
    std::deque<Burst> writes_;        // Bursts whose data is not complete.
    std::deque<Beat> beats_;          // W beats whose burst has not come.
};

}  // namespace trncore
