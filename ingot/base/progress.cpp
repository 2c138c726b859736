#include "ingot/base/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <utility>

#include "ingot/base/text_size.h"

namespace ingot {
namespace {

constexpr double quiet_seconds = 2;
constexpr double redraw_seconds = 0.1;
constexpr int64_t bar_cells = 20;

// A bar of `bar_cells` columns, drawn in eighths of a column.
std::string bar(double fraction) {
  constexpr std::array<std::string_view, 8> parts = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<int64_t>(fraction * static_cast<double>(8 * bar_cells));
  std::string out;
  for (int64_t cell = 0; cell < bar_cells; ++cell) {
    const int64_t filled = std::clamp<int64_t>(eighths - 8 * cell, 0, 8);
    out += filled == 8 ? "█" : parts[static_cast<size_t>(filled)];
  }
  return out;
}

// The first `width` columns of UTF-8 text in which every character takes one column.
std::string_view clipped(std::string_view text, int64_t width) {
  size_t end = 0;
  for (int64_t columns = 0; end < text.size(); ++end) {
    const bool starts_character = (static_cast<unsigned char>(text[end]) & 0xC0U) != 0x80U;
    if (starts_character && ++columns > width) {
      break;
    }
  }
  return text.substr(0, end);
}

}  // namespace

ProgressStyle standard_error_style() {
  ProgressStyle style;
  style.write = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  };
  style.seconds = [] {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(now).count();
  };
  style.terminal = ::isatty(STDERR_FILENO) == 1;
  winsize size{};
  if (style.terminal && ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    style.width = size.ws_col;
  }
  return style;
}

Progress::Progress(std::string title, int64_t total, std::string unit, ProgressStyle style)
    : title_(std::move(title)),
      total_(total),
      unit_(std::move(unit)),
      style_(std::move(style)),
      started_(style_.seconds()),
      shown_(started_) {}

Progress::~Progress() { finish(); }

void Progress::start_at(int64_t done) {
  start_ = done;
  done_ = done;
}

void Progress::set(int64_t done) {
  done_ = done;
  const double now = style_.seconds();
  const double wait = style_.terminal ? redraw_seconds : style_.interval_seconds;
  if (now - started_ >= quiet_seconds && (!drawn_ || now - shown_ >= wait)) {
    show(now);
  }
}

void Progress::finish() {
  if (std::exchange(finished_, true)) {
    return;
  }
  const double now = style_.seconds();
  if (drawn_ || now - started_ >= quiet_seconds) {
    show(now);
    if (style_.terminal) {
      style_.write("\n");
    }
  }
}

void Progress::show(double now) {
  const std::string text = line(now);
  if (style_.terminal) {
    style_.write(fmt::format("\r\033[K{}", clipped(text, style_.width - 1)));
  } else {
    style_.write(text + "\n");
  }
  shown_ = now;
  drawn_ = true;
}

std::string Progress::line(double now) const {
  const double elapsed = now - started_;
  const double rate = elapsed > 0 ? static_cast<double>(done_ - start_) / elapsed : 0;
  std::string text = title_ + " ";
  if (total_ > 0) {
    const double fraction =
        std::clamp(static_cast<double>(done_) / static_cast<double>(total_), 0.0, 1.0);
    if (style_.terminal) {
      text += bar(fraction) + " ";
    }
    text += fmt::format("{:.0f}%  {}/{} {}", fraction * 100, text_count(static_cast<double>(done_)),
                        text_count(static_cast<double>(total_)), unit_);
  } else {
    text += fmt::format("{} {}", text_count(static_cast<double>(done_)), unit_);
  }
  text += fmt::format("  {}/s", text_count(rate));
  if (finished_ || total_ == 0) {
    text += fmt::format("  {}", text_duration(elapsed));
  } else if (rate > 0) {
    text += fmt::format("  {} left", text_duration(static_cast<double>(total_ - done_) / rate));
  }
  return note_.empty() ? text : text + "  " + note_;
}

}  // namespace ingot
