#include "ingot/base/signals.h"

#include <atomic>

namespace ingot {
namespace {

// A signal handler can reach nothing but what has static storage.
std::atomic<bool> requested = false;
std::atomic<bool> save_wanted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void request_stop(int signal) {
  if (requested.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

extern "C" void request_save(int) { save_wanted = true; }

void catch_signal(int signal, void (*handler)(int), struct sigaction& former) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, &former);
}

}  // namespace

StopSignals::StopSignals() {
  catch_signal(SIGINT, request_stop, interrupt_);
  catch_signal(SIGTERM, request_stop, terminate_);
  catch_signal(SIGUSR1, request_save, user_);
}

StopSignals::~StopSignals() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
  sigaction(SIGUSR1, &user_, nullptr);
  requested = false;
  save_wanted = false;
}

bool stop_requested() { return requested; }

bool take_save_request() { return save_wanted.exchange(false); }

}  // namespace ingot
