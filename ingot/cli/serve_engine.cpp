#include "ingot/cli/serve_engine.h"

#include <future>
#include <utility>

namespace ingot {

Engine::Engine(const Decoder& model, const SchedulerConfig& config, const Limits& limits)
    : model_(model),
      config_(config),
      most_open_(config.rows + limits.queue),
      scheduler_(std::make_unique<Scheduler>(model, config)) {
  figures_.pages = scheduler_->decoding().pool().pages();
  figures_.cache_bytes = scheduler_->decoding().bytes();
  thread_ = std::thread([this] { loop(); });
}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Engine::Reading::~Reading() {
  for (size_t i = 0; i < unwanted_.size(); ++i) {
    drop(i);
  }
}

void Engine::Reading::drop(size_t answer) {
  *unwanted_[answer] = true;
  engine_.changed_.notify_all();
}

std::optional<AnswerEvent> Engine::Reading::next(std::chrono::milliseconds wait) {
  std::unique_lock lock(events_->mutex);
  events_->fresh.wait_for(lock, wait, [&] { return !events_->events.empty(); });
  if (events_->events.empty()) {
    return std::nullopt;
  }
  AnswerEvent out = std::move(events_->events.front());
  events_->events.pop_front();
  return out;
}

std::unique_ptr<Engine::Reading> Engine::submit(std::vector<Request> requests) {
  std::unique_ptr<Reading> out(new Reading(*this));
  {
    const std::lock_guard lock(mutex_);
    for (const Request& request : requests) {
      scheduler_->check_request(request);
    }
    const auto count = static_cast<int64_t>(requests.size());
    if (stopping_ || open_ + count > most_open_) {
      return nullptr;
    }
    open_ += count;
    for (size_t i = 0; i < requests.size(); ++i) {
      out->unwanted_.push_back(std::make_shared<std::atomic<bool>>(false));
      submitted_.push_back({std::move(requests[i]), out->events_, i, out->unwanted_.back()});
    }
  }
  changed_.notify_all();
  return out;
}

bool Engine::run(const std::function<void(const Decoder&)>& job) {
  std::promise<void> done;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || open_ >= most_open_) {
      return false;
    }
    ++open_;
    jobs_.push_back([&](bool stopping) {
      try {
        check(!stopping, ErrorKind::internal, "serve: the server is stopping");
        job(model_);
        done.set_value();
      } catch (...) {
        done.set_exception(std::current_exception());
      }
    });
  }
  changed_.notify_all();
  done.get_future().get();
  return true;
}

Engine::Figures Engine::figures() const {
  const std::lock_guard lock(mutex_);
  Figures out = figures_;
  out.waiting += static_cast<int64_t>(submitted_.size() + jobs_.size());
  return out;
}

bool Engine::drain(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, most, [&] { return open_ == 0; });
}

void Engine::loop() {
  for (;;) {
    std::function<void(bool)> job;
    {
      std::unique_lock lock(mutex_);
      // Readers that were dropped are noticed within a tenth of a second at the latest.
      changed_.wait_for(lock, std::chrono::milliseconds(live_.empty() ? 100 : 0), [&] {
        return stopping_ || !submitted_.empty() || !jobs_.empty() || !live_.empty();
      });
      if (stopping_) {
        break;
      }
      if (!jobs_.empty()) {
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
    }
    if (job) {
      job(false);
      const std::lock_guard lock(mutex_);
      --open_;
      changed_.notify_all();
    }
    try {
      take_submitted();
      cancel_unwanted();
      scheduler_->step();
    } catch (const Error& error) {
      fail_all(error);
    } catch (const std::exception& error) {
      fail_all(Error(ErrorKind::internal, concat("serve: the engine failed: ", error.what())));
    }
    publish();
    tell_ended();
  }
  fail_all(Error(ErrorKind::internal, "serve: the server is stopping"));
  tell_ended();
}

void Engine::take_submitted() {
  std::deque<Submitted> fresh;
  {
    const std::lock_guard lock(mutex_);
    fresh.swap(submitted_);
  }
  for (Submitted& each : fresh) {
    add(std::move(each));
  }
}

void Engine::add(Submitted submitted) {
  Request request = std::move(submitted.request);
  const auto events = submitted.events;
  const size_t answer = submitted.answer;
  const auto unwanted = submitted.unwanted;
  request.on_token = [events, answer, unwanted](const Drawn& drawn) {
    {
      const std::lock_guard lock(events->mutex);
      events->events.push_back({answer, drawn});
    }
    events->fresh.notify_all();
    return !*unwanted;
  };
  const auto number = std::make_shared<int64_t>(0);
  request.on_end = [this, number](const Answer& ended) {
    const auto found = live_.find(*number);
    if (found != live_.end()) {
      ended_.push_back({std::move(found->second), ended});
      live_.erase(found);
    }
  };
  try {
    *number = scheduler_->add(std::move(request));
    live_.emplace(*number, std::move(submitted));
  } catch (const Error& error) {
    Answer failed;
    failed.finish = Finish::failed;
    failed.failure = error;
    ended_.push_back({std::move(submitted), failed});
  }
}

// After publish(): who has an answer finds it in the figures.
void Engine::tell_ended() {
  for (const Ended& each : std::exchange(ended_, {})) {
    const auto& [submitted, answer] = each;
    {
      const std::lock_guard lock(submitted.events->mutex);
      submitted.events->events.push_back({submitted.answer, answer});
    }
    submitted.events->fresh.notify_all();
    {
      const std::lock_guard lock(mutex_);
      --open_;
    }
    changed_.notify_all();
  }
}

void Engine::cancel_unwanted() {
  std::vector<int64_t> gone;
  for (const auto& [number, submitted] : live_) {
    if (*submitted.unwanted) {
      gone.push_back(number);
    }
  }
  for (const int64_t number : gone) {
    scheduler_->cancel(number);
  }
}

// Ends every request, and begins with an empty cache: nothing half-done is gone on with.
void Engine::fail_all(const Error& error) {
  Answer failed;
  failed.finish = Finish::failed;
  failed.failure = error;
  take_unstarted();
  for (auto& [number, submitted] : std::exchange(live_, {})) {
    ended_.push_back({std::move(submitted), failed});
  }
  publish();
  const std::lock_guard lock(mutex_);
  before_ = figures_;
  scheduler_ = std::make_unique<Scheduler>(model_, config_);
}

// Under a number that no scheduler gives, so that fail_all() ends what it has not begun with too.
void Engine::take_unstarted() {
  const std::lock_guard lock(mutex_);
  for (Submitted& each : std::exchange(submitted_, {})) {
    const int64_t number = -1 - static_cast<int64_t>(live_.size());
    live_.emplace(number, std::move(each));
  }
  for (const auto& job : stopping_ ? std::exchange(jobs_, {}) : decltype(jobs_)()) {
    job(true);
    --open_;
  }
}

void Engine::publish() {
  const PagePool& pool = scheduler_->decoding().pool();
  const std::lock_guard lock(mutex_);
  figures_.running = scheduler_->running();
  figures_.waiting = scheduler_->waiting();
  figures_.tokens_read = before_.tokens_read + scheduler_->tokens_read();
  figures_.tokens_shared = before_.tokens_shared + scheduler_->tokens_shared();
  figures_.tokens_written = before_.tokens_written + scheduler_->tokens_written();
  figures_.pages_used = pool.used();
}

}  // namespace ingot
