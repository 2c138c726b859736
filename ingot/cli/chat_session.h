#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "ingot/cli/sampling_options.h"
#include "ingot/generate/scheduler.h"

namespace ingot {

// A conversation with a model over two streams of text.
//
// What the user says ends with a line; a line that ends with \ goes on in the next one, and lines
// between two lines of """ are one message. Lines that begin with / are commands: /help lists them.
class ChatSession {
 public:
  struct Options {
    SamplingArguments sampling;
    std::string system;        // the first system message; "" for none
    std::string kv = "model";  // what keys and values are kept in
    bool prompted = false;     // shows where the user may write: on a terminal
  };
  // The model must outlive this.
  ChatSession(const LoadedModel& loaded, Options options, std::istream& in, std::ostream& out);

  void run();  // until the end of the input or /quit

  // The turns so far, the system message first.
  const Conversation& conversation() const { return conversation_; }
  // What the model reads for the next answer: the template's text, or without one a plain script of
  // "User:" and "Assistant:".
  Tokens prompt() const;

 private:
  bool read_message(std::string& message);
  bool read_line(std::string& line, const char* invitation);
  bool obey(const std::string& line);  // false: /quit
  void set_system(const std::string& text);
  void undo();
  void save(const std::string& path);
  void answer(const std::string& message);
  void tell(const std::string& text);  // a notice, not the model's words

  const LoadedModel& loaded_;
  Options options_;
  std::istream& in_;
  std::ostream& out_;
  GenerateConfig config_;
  Scheduler scheduler_;
  Conversation conversation_;
};

}  // namespace ingot
