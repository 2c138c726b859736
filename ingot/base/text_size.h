#pragma once

#include <cstdint>
#include <string>

namespace ingot {

// Sizes as people read them.

// Bytes with a binary unit, three digits: "0 B", "1023 B", "1.50 GiB", "12.3 MiB", "-4.00 KiB".
std::string text_bytes(int64_t bytes);

// A count with a decimal unit: "999", "12.3K", "124M", "1.50B" (10⁹), "2.00T".
std::string text_count(double count);

// Floating-point operations with an SI prefix: "12 FLOP", "44.0 GFLOP", "1.50 PFLOP". A rate is
// this and "/s".
std::string text_flops(double flops);

// Seconds in the two largest units that fit: "0.4 s", "12 s", "3 min 20 s", "2 h 5 min", "3 d 4 h".
// "?" where the number is negative or not finite.
std::string text_duration(double seconds);

}  // namespace ingot
