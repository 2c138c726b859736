#include "ingot/train/train_state.h"

#include "ingot/base/error.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"

namespace ingot {
namespace {

std::vector<SampleRange> ranges_of(const nlohmann::json& state, const std::string& name) {
  const auto ends = json_field_or<std::vector<int64_t>>(state, "skipped", {}, name);
  check(ends.size() % 2 == 0, ErrorKind::format, name, ": skipped: takes pairs of samples: got ",
        ends.size(), " numbers");
  std::vector<SampleRange> out;
  for (size_t i = 0; i < ends.size(); i += 2) {
    out.push_back({ends[i], ends[i + 1]});
  }
  return out;
}

}  // namespace

int64_t next_sample(const TrainState& state, int64_t position) {
  for (const SampleRange& range : state.skipped) {
    if (position >= range.begin && position < range.end) {
      position = range.end;
    }
  }
  return position;
}

std::string state_text(const TrainState& state, const std::string& data_hash) {
  nlohmann::ordered_json out;
  out["step"] = state.step;
  out["position"] = state.position;
  out["tokens"] = state.tokens;
  out["data_hash"] = data_hash;
  out["loss_scale"] = state.loss_scale.scale;
  out["loss_scale_counter"] = state.loss_scale.counter;
  out["losses"] = state.history.losses;
  out["high_losses"] = state.history.high;
  out["step_start"] = state.history.step_start;
  out["spike_start"] = state.history.spike_start;
  out["rewinds"] = state.rewinds;
  std::vector<int64_t> ends;
  for (const SampleRange& range : state.skipped) {
    ends.insert(ends.end(), {range.begin, range.end});
  }
  out["skipped"] = ends;
  if (state.last_step > 0) {
    out["last_step"] = state.last_step;
  }
  return out.dump();
}

ParsedState parse_state(const std::string& text, const std::string& name) {
  const nlohmann::json state = parse_json(text, name);
  ParsedState out;
  out.state.step = json_field<int64_t>(state, "step", name);
  out.state.position = json_field<int64_t>(state, "position", name);
  out.state.tokens = json_field<int64_t>(state, "tokens", name);
  out.data_hash = json_field<std::string>(state, "data_hash", name);
  LossScale& scale = out.state.loss_scale;
  scale.scale = json_field_or<double>(state, "loss_scale", scale.scale, name);
  scale.counter = json_field_or<int64_t>(state, "loss_scale_counter", 0, name);
  LossHistory& history = out.state.history;
  history.losses = json_field_or<std::vector<double>>(state, "losses", {}, name);
  history.high = json_field_or<int64_t>(state, "high_losses", 0, name);
  history.step_start = json_field_or<int64_t>(state, "step_start", 0, name);
  history.spike_start = json_field_or<int64_t>(state, "spike_start", 0, name);
  out.state.rewinds = json_field_or<int64_t>(state, "rewinds", 0, name);
  out.state.skipped = ranges_of(state, name);
  out.state.last_step = json_field_or<int64_t>(state, "last_step", 0, name);
  return out;
}

}  // namespace ingot
