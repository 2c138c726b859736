#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

#include "ingot/generate/scheduler.h"

namespace ingot {

// What the engine tells whoever waits for answers.
struct AnswerEvent {
  size_t answer = 0;  // which of the requests that were submitted together
  std::variant<Drawn, Answer> what;
};

// A thread that runs a Scheduler, fed and read by any other threads.
class Engine {
 public:
  struct Limits {
    int64_t queue = 256;  // requests beyond those that are being written
  };
  struct Figures {
    int64_t running = 0, waiting = 0;
    int64_t tokens_read = 0, tokens_shared = 0, tokens_written = 0;
    int64_t pages_used = 0, pages = 0;
    int64_t cache_bytes = 0;  // of all pages
  };

  // The model must outlive this.
  Engine(const Decoder& model, const SchedulerConfig& config, const Limits& limits);
  ~Engine();  // cancels what is left
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // The answers to requests submitted together, as they are written. Destroying it cancels them.
  class Reading {
   public:
    ~Reading();
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

    // The next event; nothing where none comes in time.
    std::optional<AnswerEvent> next(std::chrono::milliseconds wait);
    // No more of that answer is wanted; its Answer still comes.
    void drop(size_t answer);

   private:
    friend class Engine;
    struct Events {
      mutable std::mutex mutex;
      std::condition_variable fresh;
      std::deque<AnswerEvent> events;
    };
    explicit Reading(Engine& engine) : engine_(engine), events_(std::make_shared<Events>()) {}

    Engine& engine_;
    std::shared_ptr<Events> events_;
    std::vector<std::shared_ptr<std::atomic<bool>>> unwanted_;  // of each answer
  };

  // Queues requests; null where the queue has no room for all of them. Throws Error(argument) as
  // Scheduler::add does, before anything is queued. Their on_token and on_end are replaced.
  std::unique_ptr<Reading> submit(std::vector<Request> requests);

  // Runs `job` on the engine's thread between two steps, and returns when it is done; what it
  // throws is thrown here. False, and not run, where the queue is full.
  bool run(const std::function<void(const Decoder&)>& job);

  Figures figures() const;
  // Waits until nothing is left to write, but no longer than `most`; whether that was so.
  bool drain(std::chrono::milliseconds most);

 private:
  // A request and whom its answer is for.
  struct Submitted {
    Request request;
    std::shared_ptr<Reading::Events> events;
    size_t answer = 0;
    std::shared_ptr<std::atomic<bool>> unwanted;
  };
  struct Ended {
    Submitted submitted;
    Answer answer;
  };
  void loop();
  void take_submitted();
  void cancel_unwanted();
  void add(Submitted submitted);
  void tell_ended();
  void fail_all(const Error& error);
  void take_unstarted();
  void publish();

  const Decoder& model_;
  SchedulerConfig config_;
  int64_t most_open_;

  mutable std::mutex mutex_;  // of everything down to stopping_
  std::condition_variable changed_;
  std::unique_ptr<Scheduler> scheduler_;  // stepped without the mutex, by the thread alone
  std::deque<Submitted> submitted_;
  std::deque<std::function<void(bool stopping)>> jobs_;
  Figures figures_;
  int64_t open_ = 0;  // submitted and not ended
  bool stopping_ = false;

  // Of the thread:
  std::map<int64_t, Submitted> live_;  // what the scheduler has, by its numbers
  std::vector<Ended> ended_;           // whom to tell once the figures have it
  Figures before_;                     // of schedulers that a failure ended
  std::thread thread_;
};

}  // namespace ingot
