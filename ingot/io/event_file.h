#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ingot {

// Curves for TensorBoard: a file of events in a folder. An event is a protocol buffer message
// (tensorflow/core/util/event.proto and framework/summary.proto), framed as a TFRecord:
//   length u64, masked CRC-32C of the length, the message, masked CRC-32C of it;  little-endian
// Written by hand: four kinds of field are used, and the program needs no library for them. Tests
// read the files with the protobuf library.
class EventFile {
 public:
  using Scalars = std::vector<std::pair<std::string, double>>;

  // Begins another file in the folder. Events of steps after `from_step` in the files of earlier
  // processes are void, and TensorBoard is told so. Throws Error(io).
  EventFile(const std::filesystem::path& folder, int64_t from_step);

  void write(int64_t step, const Scalars& scalars);

 private:
  void write_record(std::string_view message);

  std::filesystem::path path_;
  std::ofstream file_;
};

// The checksum of Castagnoli, Bräuer and Herrmann 1993 (RFC 3720, appendix B.4).
uint32_t crc32c(std::string_view bytes);

}  // namespace ingot
