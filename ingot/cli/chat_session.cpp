#include "ingot/cli/chat_session.h"

#include <algorithm>
#include <istream>
#include <ostream>

#include "ingot/base/files.h"
#include "ingot/base/json_library.h"
#include "ingot/base/signals.h"
#include "ingot/cli/answer_text.h"
#include "ingot/cli/token_json.h"

namespace ingot {
namespace {

constexpr const char* fence = "\"\"\"";
constexpr const char* help =
    "/system TEXT   what the model is told before everything (without TEXT: nothing)\n"
    "/undo          takes back your last message and the answer to it\n"
    "/clear         begins anew, with the same system message\n"
    "/save FILE     writes the conversation as a line of JSON, as training reads it\n"
    "/help          this\n"
    "/quit          ends (so does the end of the input)\n"
    "A line that ends with \\ goes on in the next; lines between two lines of \"\"\" are one "
    "message.\n"
    "Ctrl-C ends an answer.";

std::string text_field(const Message& message, std::string_view name) {
  const jinja::Value* found = message.fields.find(name);
  return found == nullptr || found->text() == nullptr ? "" : *found->text();
}

// The cache keeps what was read of earlier turns beside the text that is written.
SchedulerConfig cache_for(const Decoder& model, const std::string& kv) {
  SchedulerConfig out;
  out.kv = kv;
  out.rows = 2;
  out.cache_tokens = cache_tokens_within(model, out, int64_t{2} << 30);
  out.rows = 1;
  return out;
}

}  // namespace

ChatSession::ChatSession(const LoadedModel& loaded, Options options, std::istream& in,
                         std::ostream& out)
    : loaded_(loaded),
      options_(std::move(options)),
      in_(in),
      out_(out),
      config_(settings_for(options_.sampling, loaded)),
      scheduler_(loaded.decoder(), cache_for(loaded.decoder(), options_.kv)) {
  if (!loaded.chat) {
    options_.sampling.stop_texts.emplace_back("\nUser:");
  }
  if (!options_.system.empty()) {
    set_system(options_.system);
  }
}

void ChatSession::run() {
  for (std::string message; read_message(message);) {
    if (message.starts_with('/') && message.find('\n') == std::string::npos) {
      if (!obey(message)) {
        return;
      }
    } else if (message.find_first_not_of(" \t\n") != std::string::npos) {
      answer(message);
    }
  }
}

bool ChatSession::read_line(std::string& line, const char* invitation) {
  if (options_.prompted) {
    out_ << invitation << std::flush;
  }
  const bool there = static_cast<bool>(std::getline(in_, line));
  if (there && line.ends_with('\r')) {
    line.pop_back();
  }
  return there;
}

// False at the end of the input. What a fence or a \ left open ends there too.
bool ChatSession::read_message(std::string& message) {
  std::string line;
  message.clear();
  if (!read_line(line, "> ")) {
    return false;
  }
  if (line == fence) {
    for (bool first = true; read_line(line, "… ") && line != fence; first = false) {
      message += (first ? "" : "\n") + line;
    }
    return true;
  }
  while (line.ends_with('\\')) {
    line.pop_back();
    message += line + '\n';
    if (!read_line(line, "… ")) {
      return true;
    }
  }
  message += line;
  return true;
}

void ChatSession::tell(const std::string& text) { out_ << text << std::endl; }

bool ChatSession::obey(const std::string& line) {
  const size_t space = std::min(line.find(' '), line.size());
  const std::string word = line.substr(0, space);
  const std::string rest = line.substr(std::min(space + 1, line.size()));
  if (word == "/quit" || word == "/exit") {
    return false;
  }
  if (word == "/help") {
    tell(help);
  } else if (word == "/system") {
    set_system(rest);
  } else if (word == "/undo") {
    undo();
  } else if (word == "/clear") {
    auto& turns = conversation_.messages;
    const bool system = !turns.empty() && role_of(turns.front()) == "system";
    turns.erase(turns.begin() + (system ? 1 : 0), turns.end());
  } else if (word == "/save") {
    save(rest);
  } else {
    tell(word + ": no such command; /help lists them");
  }
  return true;
}

void ChatSession::set_system(const std::string& text) {
  auto& turns = conversation_.messages;
  if (!turns.empty() && role_of(turns.front()) == "system") {
    turns.erase(turns.begin());
  }
  if (!text.empty()) {
    turns.insert(turns.begin(), make_message("system", text));
  }
}

void ChatSession::undo() {
  auto& turns = conversation_.messages;
  const auto last = std::find_if(turns.rbegin(), turns.rend(),
                                 [](const Message& turn) { return role_of(turn) == "user"; });
  if (last == turns.rend()) {
    tell("there is nothing to take back");
    return;
  }
  turns.erase(last.base() - 1, turns.end());
}

void ChatSession::save(const std::string& path) {
  nlohmann::ordered_json turns = nlohmann::ordered_json::array();
  for (const Message& turn : conversation_.messages) {
    turns.push_back({{"role", role_of(turn)}, {"content", text_field(turn, "content")}});
  }
  try {
    check(!path.empty(), ErrorKind::config, "/save: no file; write /save FILE");
    write_file(path, text_of({{"messages", std::move(turns)}}) + '\n');
    tell("saved " + path);
  } catch (const Error& error) {
    tell(error.what());
  }
}

Tokens ChatSession::prompt() const {
  if (loaded_.chat) {
    return chat_tokens(loaded_, conversation_);
  }
  std::string script;
  for (const Message& turn : conversation_.messages) {
    const std::string_view role = role_of(turn);
    script += role == "user" ? "User: " : role == "assistant" ? "Assistant: " : "";
    script += text_field(turn, "content") + '\n';
  }
  return loaded_.text().prompt(script + "Assistant:");
}

void ChatSession::answer(const std::string& message) {
  conversation_.messages.push_back(make_message("user", message));
  AnswerText text(loaded_.text(), options_.sampling.stop_texts, config_.stop_tokens);
  std::string written;
  const auto put = [&](const std::string& part) {
    written += part;
    out_ << part << std::flush;
  };
  Request request;
  request.config = config_;
  request.on_token = [&](const Drawn& drawn) {
    put(text.add(drawn.token));
    return !text.ended() && !stop_requested();
  };
  Answer ended;
  request.on_end = [&](const Answer& answer) { ended = answer; };
  try {
    const StopSignals signals;  // the first Ctrl-C ends this answer, and not the program
    request.prompt = prompt();
    scheduler_.add(std::move(request));
    while (scheduler_.step()) {
    }
    if (ended.failure) {
      throw Error(*ended.failure);
    }
  } catch (const Error& error) {
    conversation_.messages.pop_back();
    tell(error.what());
    return;
  }
  put(text.finish());
  out_ << std::endl;
  if (ended.finish == Finish::context) {
    tell("(the model's context is full: /undo or /clear makes room)");
  }
  const size_t first = loaded_.chat ? 0 : std::min(written.find_first_not_of(' '), written.size());
  conversation_.messages.push_back(make_message("assistant", written.substr(first)));
}

}  // namespace ingot
