#pragma once

#include <csignal>

namespace ingot {

// Ctrl-C and `kill` as a polite request. While one StopSignals lives, the first SIGINT or SIGTERM
// only makes stop_requested() true, so that a loop can end between two steps with nothing half
// done; the second ends the process at once, as if neither had been caught (shells see the signal).
// SIGUSR1 asks to save and go on: take_save_request(). Only one at a time: signal handlers belong
// to the process. The destructor puts the former handlers back and forgets the request.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  struct sigaction interrupt_ {};
  struct sigaction terminate_ {};
  struct sigaction user_ {};
};

bool stop_requested();     // from any thread
bool take_save_request();  // whether there was one since the last call

}  // namespace ingot
