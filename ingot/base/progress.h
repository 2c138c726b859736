#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace ingot {

// Where and how a Progress shows itself.
struct ProgressStyle {
  std::function<void(std::string_view)> write;  // receives text to print, control codes included
  std::function<double()> seconds;              // a clock that never goes back
  bool terminal = false;                        // redraw one line, or print a line per interval
  int64_t width = 80;                           // columns of the terminal
  double interval_seconds = 10;                 // between two lines where it is no terminal
};

// Standard error, the system's clock, and whether that is a terminal of which width.
ProgressStyle standard_error_style();

// How far a long task is: a bar with rate and time left on a terminal,
//   tokenize ████████▌        52%  1.20M/2.31M bytes  310K/s  3 s left  loss 2.31
// a plain line per interval elsewhere, and nothing at all for tasks shorter than two seconds. Used
// from one thread.
class Progress {
 public:
  // `total` 0: unknown, then neither bar nor time left is shown. `unit` names what is counted.
  Progress(std::string title, int64_t total, std::string unit,
           ProgressStyle style = standard_error_style());
  ~Progress();  // finish()
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(int64_t count = 1) { set(done_ + count); }
  void set(int64_t done);
  // The task began at `done` and not at zero (a resumed run): the rate counts from there.
  void start_at(int64_t done);
  void note(std::string text) { note_ = std::move(text); }  // shown at the end of the line
  void finish();  // draws the last state and ends the line

 private:
  void show(double now);
  std::string line(double now) const;

  std::string title_;
  int64_t total_;
  std::string unit_;
  ProgressStyle style_;
  std::string note_;
  int64_t start_ = 0;
  int64_t done_ = 0;
  double started_;
  double shown_;  // when last drawn; before `started_` when never
  bool drawn_ = false;
  bool finished_ = false;
};

}  // namespace ingot
