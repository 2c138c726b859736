#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ingot {

// Texts with what belongs to them, from JSONL.
struct TextRow {
  std::string text;
  std::string other;  // the label, or the text that belongs to it
};

// The members `text` and `other` of each line, strings or numbers. Empty lines are passed over.
// Throws Error(format) naming file and line where a line is no JSON object or lacks one of them.
std::vector<TextRow> read_text_rows(const std::filesystem::path& file, const std::string& text,
                                    const std::string& other);

}  // namespace ingot
