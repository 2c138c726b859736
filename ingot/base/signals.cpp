#include "ingot/base/signals.h"

#include <atomic>

namespace ingot {
namespace {

// A signal handler can reach nothing but what has static storage.
std::atomic<bool> requested = false;
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void request_stop(int signal) {
  if (requested.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

void catch_signal(int signal, struct sigaction& former) {
  struct sigaction action {};
  action.sa_handler = request_stop;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, &former);
}

}  // namespace

StopSignals::StopSignals() {
  catch_signal(SIGINT, interrupt_);
  catch_signal(SIGTERM, terminate_);
}

StopSignals::~StopSignals() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
  requested = false;
}

bool stop_requested() { return requested; }

}  // namespace ingot
