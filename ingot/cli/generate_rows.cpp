#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>

#include "ingot/base/files.h"
#include "ingot/base/hash.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/base/log.h"
#include "ingot/base/progress.h"
#include "ingot/base/signals.h"
#include "ingot/cli/answer_text.h"
#include "ingot/cli/generate_arguments.h"
#include "ingot/cli/generate_filter.h"
#include "ingot/cli/token_json.h"
#include "ingot/text/jinja_json.h"

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

// What decides an answer besides its row, as a hash.
std::string settings_hash(const GenerateArguments& a, const GenerateConfig& config) {
  std::string all = concat(
      config.max_tokens, ' ', config.seed, ' ', config.sampling.temperature, ' ',
      config.sampling.top_k, ' ', config.sampling.top_p, ' ', config.sampling.min_p, ' ',
      config.sampling.typical_p, ' ', config.rules.repetition_penalty, ' ',
      config.rules.presence_penalty, ' ', config.rules.frequency_penalty, ' ', a.truncate, ' ',
      a.log_probabilities, a.prompt_log_probabilities, a.parse_special, '\n', a.model.path, '\n',
      a.model.dtype, a.model.int8, a.model.kv == "model" ? std::string() : a.model.kv, '\n',
      a.regex, '\n', a.schema, '\n');
  for (const int64_t token : config.stop_tokens) {
    all += concat(token, ',');
  }
  for (const auto* list : {&a.sampling.bias, &a.sampling.banned, &a.sampling.stop_texts}) {
    for (const std::string& text : *list) {
      all += '\n' + text;
    }
  }
  return hash_hex(all).substr(0, 16);
}

// The rows of a JSONL file, one after another. Empty lines are not rows.
class PromptFile {
 public:
  explicit PromptFile(const std::string& path) : path_(path), file_(path, std::ios::binary) {
    check(file_.good(), ErrorKind::io, path, ": cannot be read: ", std::strerror(errno));
  }
  // False at the end. `row` counts from 0, `place` is "file:line".
  bool next(std::string& line, int64_t& row, std::string& place) {
    while (std::getline(file_, line)) {
      ++line_;
      if (line.find_first_not_of(" \t\r") != std::string::npos) {
        row = rows_++;
        place = concat(path_, ':', line_);
        return true;
      }
    }
    return false;
  }

 private:
  std::string path_;
  std::ifstream file_;
  int64_t line_ = 0, rows_ = 0;
};

int64_t rows_in(const std::string& path) {
  PromptFile file(path);
  std::string line, place;
  int64_t row = -1;
  while (file.next(line, row, place)) {
  }
  return row + 1;
}

// The answers, a line each, in the order they end. A line is written by one call to the system; one
// that a kill cut short is removed when the file is opened again, and its row written anew.
class AnswerFile {
 public:
  AnswerFile(std::string path, std::string settings)
      : path_(std::move(path)), settings_(std::move(settings)) {
    if (file_exists(path_)) {
      read_done();
    }
    descriptor_ = ::open(path_.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
    check(descriptor_ >= 0, ErrorKind::io, path_, ": cannot be written: ", std::strerror(errno));
  }
  ~AnswerFile() { ::close(descriptor_); }
  AnswerFile(const AnswerFile&) = delete;
  AnswerFile& operator=(const AnswerFile&) = delete;

  int64_t done() const { return static_cast<int64_t>(inputs_.size()); }
  // Whether the row is there. Throws Error(config) where it was another one.
  bool has(int64_t row, const std::string& input, const std::string& place) const {
    const auto found = inputs_.find(row);
    if (found == inputs_.end()) {
      return false;
    }
    check(found->second == hash_hex(input), ErrorKind::config, path_, ": row ", row,
          " answers another input than ", place, " holds; give another --out");
    return true;
  }
  void write(const Json& answer) {
    const std::string line = text_of(answer) + '\n';
    for (size_t at = 0; at < line.size();) {
      const ssize_t count = ::write(descriptor_, line.data() + at, line.size() - at);
      check(count >= 0 || errno == EINTR, ErrorKind::io, path_,
            ": cannot be written: ", std::strerror(errno), "; what is there will be gone on from");
      at += static_cast<size_t>(std::max<ssize_t>(count, 0));
    }
  }
  void sync() const {
    check(::fsync(descriptor_) == 0 || errno == EINVAL, ErrorKind::io, path_,
          ": cannot be written: ", std::strerror(errno));
  }

 private:
  void read_done() {
    const std::string bytes = read_file(path_);
    size_t at = 0;
    for (size_t end = 0; (end = bytes.find('\n', at)) != std::string::npos; at = end + 1) {
      const std::string place = concat(path_, " line ", inputs_.size() + 1);
      const auto line = parse_json(std::string_view(bytes).substr(at, end - at), place);
      const auto hash = json_field<std::string>(line, "settings", place);
      check(hash == settings_, ErrorKind::config, place, ": was written with other settings; give ",
            "another --out, or the same settings to go on");
      inputs_[json_field<int64_t>(line, "row", place)] =
          json_field<std::string>(line, "input_hash", place);
    }
    if (at < bytes.size()) {
      log_warn(path_, ": its last line was cut off by an interruption and is written anew");
      std::filesystem::resize_file(path_, at);
    }
  }

  std::string path_, settings_;
  std::map<int64_t, std::string> inputs_;  // of the rows that are there: the hash of each
  int descriptor_ = -1;
};

// What stands in a row: "prompt", a text or token ids, or "messages" with "tools", of which an
// answer at the end is left out.
Tokens tokens_of(const LoadedModel& loaded, const GenerateArguments& arguments,
                 const std::string& line, const std::string& place) {
  const jinja::Value row = jinja::parse_json_value(line, place);
  check(row.mapping() != nullptr, ErrorKind::format, place,
        ": not an object; write {\"prompt\": …} or {\"messages\": […]}");
  if (row.mapping()->find("messages") != nullptr) {
    Conversation conversation = conversation_from(row, place);
    drop_answer(conversation.messages);
    return chat_tokens(loaded, conversation);
  }
  const jinja::Value* prompt = row.mapping()->find("prompt");
  check(prompt != nullptr, ErrorKind::format, place,
        ": neither prompt nor messages; write {\"prompt\": …} or {\"messages\": […]}");
  if (const jinja::Items* ids = prompt->list()) {
    Tokens out;
    for (const jinja::Value& id : *ids) {
      check(id.is<int64_t>(), ErrorKind::format, place, ": prompt: holds what is no token id");
      out.push_back(*id.as<int64_t>());
    }
    return out;
  }
  check(prompt->text() != nullptr, ErrorKind::format, place,
        ": prompt: neither a text nor a list of token ids");
  return loaded.text().prompt(*prompt->text(),
                              {.add_special = true, .parse_special = arguments.parse_special});
}

// Everything that one run needs.
class RowsRun {
 public:
  RowsRun(const GenerateArguments& arguments, const LoadedModel& loaded)
      : arguments_(arguments),
        loaded_(loaded),
        config_(settings_for(arguments.sampling, loaded)),
        settings_(settings_hash(arguments, config_)),
        filter_(filter_for(arguments.regex, arguments.schema, loaded, config_.stop_tokens)),
        in_(arguments.in),
        out_(arguments.out, settings_),
        scheduler_(loaded.decoder(), scheduler_settings(arguments, loaded.decoder())),
        total_(rows_in(arguments.in)),
        progress_("generate", total_, "rows") {
    progress_.start_at(out_.done());
  }

  void run() {
    const StopSignals signals;
    bool more = true;
    while (more || scheduler_.running() + scheduler_.waiting() > 0) {
      if (stop_requested()) {
        out_.sync();
        log_warn("stopped with ", out_.done() + written_, " of ", total_,
                 " rows written; the same command goes on from there");
        return;
      }
      while (more && scheduler_.waiting() < 2) {
        more = add_next();
      }
      scheduler_.step();
    }
    out_.sync();
    progress_.finish();
    if (arguments_.json) {
      std::cout << text_of({{"rows", total_},
                            {"written", written_},
                            {"tokens", scheduler_.tokens_written()},
                            {"prompt_tokens", scheduler_.tokens_read()},
                            {"shared_prompt_tokens", scheduler_.tokens_shared()}})
                << '\n';
    }
  }

 private:
  static SchedulerConfig scheduler_settings(const GenerateArguments& arguments,
                                            const Decoder& model) {
    SchedulerConfig out;
    out.rows = arguments.rows;
    out.kv = arguments.model.kv;
    out.cache_tokens = cache_tokens_within(model, out, arguments.cache_mib << 20);
    return out;
  }

  // Queues the next row that is not there yet; false where there is none.
  bool add_next() {
    std::string line, place;
    int64_t row = 0;
    do {
      if (!in_.next(line, row, place)) {
        return false;
      }
    } while (out_.has(row, line, place));
    const int64_t context = loaded_.decoder().config().context;
    Request request;
    request.prompt =
        fitted(tokens_of(loaded_, arguments_, line, place), truncate_named(arguments_.truncate),
               context, config_.max_tokens, place + ": the prompt");
    request.config = config_;
    request.choice = row;  // so that equal prompts have different answers
    request.log_probabilities = arguments_.log_probabilities;
    request.prompt_log_probabilities = arguments_.prompt_log_probabilities;
    request.filter = filter_ ? filter_->copy() : nullptr;
    struct Writing {
      AnswerText text;
      std::string written;
      std::vector<Drawn> drawn;
    };
    const auto writing = std::make_shared<Writing>(Writing{
        AnswerText(loaded_.text(), arguments_.sampling.stop_texts, config_.stop_tokens), "", {}});
    request.on_token = [writing](const Drawn& drawn) {
      writing->written += writing->text.add(drawn.token);
      if (drawn.log_probability) {
        writing->drawn.push_back(drawn);
      }
      return !writing->text.ended();
    };
    const auto prompt_tokens = static_cast<int64_t>(request.prompt.size());
    request.on_end = [this, writing, line, row, place, prompt_tokens](const Answer& answer) {
      if (answer.failure) {
        throw Error(*answer.failure).within(place);
      }
      writing->written += writing->text.finish();
      Json out = {{"row", row},
                  {"input", Json::parse(line)},
                  {"output", writing->written},
                  {"finish", finish_name(answer.finish, writing->text.ended())},
                  {"prompt_tokens", prompt_tokens},
                  {"output_tokens", answer.tokens.size()}};
      if (arguments_.ids) {
        out["ids"] = answer.tokens;
      }
      if (arguments_.log_probabilities >= 0) {
        out["logprobs"] = log_probabilities_json(loaded_.text(), writing->drawn);
      }
      if (arguments_.prompt_log_probabilities) {
        out["prompt_logprobs"] = log_probabilities_json(loaded_.text(), answer.prompt);
      }
      out["settings"] = settings_;
      out["input_hash"] = hash_hex(line);
      out_.write(out);
      ++written_;
      progress_.set(out_.done() + written_);
    };
    scheduler_.add(std::move(request));
    return true;
  }

  const GenerateArguments& arguments_;
  const LoadedModel& loaded_;
  GenerateConfig config_;
  std::string settings_;
  std::unique_ptr<TokenFilter> filter_;
  PromptFile in_;
  AnswerFile out_;
  Scheduler scheduler_;
  int64_t total_;
  int64_t written_ = 0;
  Progress progress_;
};

}  // namespace

void generate_rows(const GenerateArguments& arguments, const LoadedModel& loaded) {
  RowsRun(arguments, loaded).run();
}

}  // namespace ingot
