#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "ingot/cli/serve_answer.h"
#include "ingot/cli/serve_engine.h"
#include "ingot/cli/serve_http.h"
#include "ingot/cli/serve_metrics.h"

namespace ingot {

struct ServeConfig {
  std::string host = "127.0.0.1";
  int64_t port = 8080;  // 0: any that is free
  std::string key;      // "": none
  std::string name;     // of the model; "": that of its folder
  SchedulerConfig scheduler;
  int64_t queue = 256;
  int64_t max_tokens = 4096;
  int64_t body_bytes = int64_t{4} << 20;
  int64_t request_seconds = 600;  // for an answer
  int64_t read_seconds = 30;      // for a request to arrive
  int64_t drain_seconds = 30;     // for answers to end when the server stops
};

// An HTTP server of one model: OpenAI's chat and text completions, embeddings and models, with
// /health, /metrics and a page to chat on. Each connection has a thread, which waits for the
// engine.
class Server {
 public:
  // Takes the port. Throws Error(config) where that is not possible. The model must outlive this.
  Server(const LoadedModel& loaded, const ServeConfig& config);
  ~Server();

  int port() const { return port_; }
  void start();  // answers from here on, on threads of its own
  // Refuses new requests, waits for those that are being answered, then closes. Returns whether all
  // ended within config.drain_seconds; the others were cut off.
  bool stop();

 private:
  using Handler = void (Server::*)(const httplib::Request&, httplib::Response&);
  void route();
  httplib::Server::Handler guarded(const std::string& endpoint, Handler handler);
  static void refuse(const ApiError& error, httplib::Response& response);
  void check_allowed(const httplib::Request& request) const;
  void check_body(const httplib::Request& request) const;
  void check_model(const std::string& model) const;
  RequestLimits limits() const;

  void completions(const httplib::Request& request, httplib::Response& response, bool chat);
  void chat_completions(const httplib::Request& request, httplib::Response& response);
  void text_completions(const httplib::Request& request, httplib::Response& response);
  void embeddings(const httplib::Request& request, httplib::Response& response);
  void models(const httplib::Request& request, httplib::Response& response);
  void health(const httplib::Request& request, httplib::Response& response);
  void metrics(const httplib::Request& request, httplib::Response& response);
  void page(const httplib::Request& request, httplib::Response& response);

  struct Answering;
  std::vector<std::string> next_chunks(Answering& answering, bool& gone);
  void answer_whole(Answering& answering, httplib::Response& response);
  void answer_in_chunks(std::shared_ptr<Answering> answering, httplib::Response& response);

  const LoadedModel& loaded_;
  ServeConfig config_;
  std::string name_;
  int64_t created_;
  Metrics metrics_;
  Engine engine_;
  std::atomic<bool> draining_ = false;
  std::atomic<bool> cutting_off_ = false;
  std::atomic<int64_t> answering_ = 0;  // requests whose response is not complete
  std::atomic<uint64_t> next_id_ = 0;
  HttpServer http_;
  int port_ = 0;
  std::thread listener_;
};

// The page at /.
extern const char* const chat_page;

}  // namespace ingot
