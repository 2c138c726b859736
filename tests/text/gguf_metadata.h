#pragma once

#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "ingot/base/files.h"
#include "ingot/text/gguf_vocabulary.h"

namespace ingot::testing {

// The vocabulary of a well-formed GGUF file, version 2 or 3, for tests of what is made of it.
class GgufMetadata {
 public:
  static GgufVocabulary read(const std::filesystem::path& path) {
    GgufMetadata reader;
    reader.bytes_ = read_file(path);
    reader.out_.source = path.filename().string();
    reader.at_ = 16;
    const auto count = reader.number<uint64_t>();
    for (uint64_t i = 0; i < count; ++i) {
      const std::string key = reader.text();
      reader.value(key, reader.number<uint32_t>());
    }
    return reader.out_;
  }

 private:
  template <class T>
  T number() {
    T value{};
    if (bytes_.size() - at_ < sizeof(T)) {
      throw std::runtime_error("the GGUF file is cut off");
    }
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  std::string text() {
    const auto size = number<uint64_t>();
    std::string out = bytes_.substr(at_, size);
    at_ += size;
    return out;
  }
  double plain(uint32_t type) {
    switch (type) {
      case 0: return number<uint8_t>();
      case 1: return number<int8_t>();
      case 2: return number<uint16_t>();
      case 3: return number<int16_t>();
      case 4: return number<uint32_t>();
      case 5: return number<int32_t>();
      case 6: return number<float>();
      case 7: return number<uint8_t>();
      case 10: return static_cast<double>(number<uint64_t>());
      case 11: return static_cast<double>(number<int64_t>());
      case 12: return number<double>();
      default: throw std::runtime_error("a GGUF value of an unknown type");
    }
  }
  void value(const std::string& key, uint32_t type) {
    if (type == 8) {
      const std::string value = text();
      out_.model = key == "tokenizer.ggml.model" ? value : out_.model;
      out_.pre = key == "tokenizer.ggml.pre" ? value : out_.pre;
    } else if (type == 9) {
      const auto item = number<uint32_t>();
      const auto count = number<uint64_t>();
      for (uint64_t i = 0; i < count; ++i) {
        list_item(key, item);
      }
    } else {
      single(key, plain(type));
    }
  }
  void list_item(const std::string& key, uint32_t item) {
    if (item == 8) {
      const std::string value = text();
      if (key == "tokenizer.ggml.tokens") {
        out_.tokens.push_back(value);
      } else if (key == "tokenizer.ggml.merges") {
        out_.merges.push_back(value);
      }
      return;
    }
    const double value = plain(item);
    if (key == "tokenizer.ggml.scores") {
      out_.scores.push_back(static_cast<float>(value));
    } else if (key == "tokenizer.ggml.token_type") {
      out_.types.push_back(static_cast<int32_t>(value));
    } else if (key == "tokenizer.ggml.precompiled_charsmap") {
      out_.charsmap += static_cast<char>(static_cast<uint8_t>(value));
    }
  }
  void single(const std::string& key, double value) {
    const auto id = static_cast<int64_t>(value);
    const bool flag = value != 0;
    if (key == "tokenizer.ggml.bos_token_id") {
      out_.bos = id;
    }
    if (key == "tokenizer.ggml.eos_token_id") {
      out_.eos = id;
    }
    if (key == "tokenizer.ggml.unknown_token_id") {
      out_.unknown = id;
    }
    if (key == "tokenizer.ggml.padding_token_id") {
      out_.pad = id;
    }
    if (key == "tokenizer.ggml.add_bos_token") {
      out_.add_bos = flag;
    }
    if (key == "tokenizer.ggml.add_eos_token") {
      out_.add_eos = flag;
    }
    if (key == "tokenizer.ggml.add_space_prefix") {
      out_.add_space_prefix = flag;
    }
    if (key == "tokenizer.ggml.remove_extra_whitespaces") {
      out_.remove_extra_spaces = flag;
    }
  }

  std::string bytes_;
  size_t at_ = 0;
  GgufVocabulary out_;
};

}  // namespace ingot::testing
