#include "ingot/cli/serve_server.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <random>
#include <utility>

#include "ingot/autograd/grad_mode.h"
#include "ingot/base/log.h"
#include "ingot/cli/serve_bodies.h"
#include "ingot/ops/reduce.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds glance{100};  // how often a waiting thread looks around
constexpr const char* json_type = "application/json";

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host.starts_with("127.") || host == "::1";
}

// Compares without telling by its time how much agrees.
bool same_key(const std::string& given, const std::string& wanted) {
  unsigned difference = given.size() == wanted.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    difference |= static_cast<unsigned>(static_cast<uint8_t>(given[i])) ^
                  static_cast<unsigned>(static_cast<uint8_t>(wanted[i % wanted.size()]));
  }
  return difference == 0;
}

int64_t fresh_seed() {
  std::random_device random;
  return static_cast<int64_t>((uint64_t{random()} << 32 | random()) >> 1);
}

std::string event_of(const std::string& data) { return "data: " + data + "\n\n"; }

// The mean of the hidden states of a text, of length 1.
std::vector<float> embedding_of(const Decoder& model, const Tokens& tokens) {
  const NoGrad quiet;
  const auto size = static_cast<int64_t>(tokens.size());
  const Tensor hidden = model.hidden(tensor_of(tokens, {1, size}));
  const Tensor mean_state = dense(mean(converted(hidden, DType::f32), 1));
  std::vector<float> out;
  double square = 0;
  for (const float value : mean_state.values<float>()) {
    out.push_back(value);
    square += static_cast<double>(value) * value;
  }
  for (float& value : out) {
    value = static_cast<float>(value / std::max(std::sqrt(square), 1e-12));
  }
  return out;
}

Connection::Limits connection_limits(const ServeConfig& config) {
  Connection::Limits out;
  out.request = std::chrono::seconds(config.read_seconds);
  out.write = std::chrono::seconds(config.read_seconds);
  // Beyond the body it takes: its headers, and what is skipped to answer 413.
  out.request_bytes = static_cast<size_t>(4 * config.body_bytes) + (size_t{1} << 20);
  return out;
}

// Every request that may be open has a thread that waits, and some are left to say no and to serve
// /health.
size_t thread_count(const ServeConfig& config) {
  return static_cast<size_t>(config.scheduler.rows + config.queue + 32);
}

}  // namespace

// One request while its answer is made.
struct Server::Answering {
  Answering(CompletionAnswer made, std::atomic<int64_t>& count)
      : answer(std::move(made)), counter(count) {
    ++counter;
  }
  ~Answering() { --counter; }
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;

  CompletionAnswer answer;
  std::unique_ptr<Engine::Reading> reading;
  std::atomic<int64_t>& counter;
  Clock::time_point start = Clock::now();
  Clock::time_point looked = start;
  Clock::time_point sent = start;
  bool first_token = false;
  bool opened = false;
};

Server::Server(const LoadedModel& loaded, const ServeConfig& config)
    : loaded_(loaded),
      config_(config),
      name_(config.name.empty() ? loaded.name : config.name),
      created_(std::time(nullptr)),
      engine_(loaded.decoder(), config.scheduler, {config.queue}),
      http_(connection_limits(config), thread_count(config), draining_) {
  http_.set_payload_max_length(static_cast<size_t>(config.body_bytes));
  route();
  port_ = http_.bind(config.host, static_cast<int>(config.port));
  check(port_ > 0, ErrorKind::config, "serve: port ", config.port, " of ", config.host,
        " cannot be opened: another program has it, this user may not, or this machine has no such "
        "address; choose another with --port or --host");
}

Server::~Server() {
  if (listener_.joinable()) {
    stop();
  }
}

void Server::start() {
  listener_ = std::thread([this] { http_.listen_after_bind(); });
  while (!http_.is_running()) {  // stopping it before would go unheard
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

bool Server::stop() {
  draining_ = true;
  const auto wait_until_answered = [this](std::chrono::milliseconds most) {
    const auto end = Clock::now() + most;
    while (answering_ > 0 && Clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return answering_ == 0;
  };
  const bool all = wait_until_answered(std::chrono::seconds(config_.drain_seconds));
  cutting_off_ = true;
  wait_until_answered(std::chrono::seconds(2));
  http_.stop();
  if (listener_.joinable()) {
    listener_.join();
  }
  return all;
}

// Becomes the response to a request that is refused.
void Server::refuse(const ApiError& error, httplib::Response& response) {
  response.status = error.status();
  response.set_content(error_body(error), json_type);
  if (error.status() == 401) {
    response.set_header("WWW-Authenticate", "Bearer");
  } else if (error.status() == 429 || error.status() == 503) {
    response.set_header("Retry-After", "1");
  }
}

void Server::route() {
  // Before the body is read: who may not send one is not listened to.
  http_.set_pre_routing_handler(
      [this](const httplib::Request& request, httplib::Response& response) {
        try {
          check_allowed(request);
          return httplib::Server::HandlerResponse::Unhandled;
        } catch (const ApiError& error) {
          refuse(error, response);
          response.set_header("Connection", "close");
          if (Connection::current() != nullptr) {
            Connection::current()->end();
          }
          metrics_.count_request("refused", error.status());
          return httplib::Server::HandlerResponse::Handled;
        }
      });
  http_.Post("/v1/chat/completions", guarded("chat", &Server::chat_completions));
  http_.Post("/v1/completions", guarded("completions", &Server::text_completions));
  http_.Post("/v1/embeddings", guarded("embeddings", &Server::embeddings));
  http_.Get("/v1/models", guarded("models", &Server::models));
  http_.Get("/metrics", guarded("metrics", &Server::metrics));
  http_.Get("/health", guarded("health", &Server::health));
  http_.Get("/", guarded("page", &Server::page));
  // What httplib refuses by itself: malformed requests, unknown paths, bodies that are too long.
  http_.set_error_handler([this](const httplib::Request& request, httplib::Response& response) {
    if (!response.body.empty()) {
      return;
    }
    const std::string what =
        response.status == 404   ? concat("there is no ", request.method, ' ', request.path)
        : response.status == 413 ? concat("the body is longer than ", config_.body_bytes, " bytes")
                                 : concat("the request is malformed, or took too long to arrive");
    response.set_content(error_body(ApiError(response.status, what)), json_type);
    if (response.status != 404 && Connection::current() != nullptr) {
      response.set_header("Connection", "close");  // what follows on it may be anything
      Connection::current()->end();
    }
    metrics_.count_request("other", response.status);
  });
}

// A handler whose errors become responses.
httplib::Server::Handler Server::guarded(const std::string& endpoint, Handler handler) {
  return [this, endpoint, handler](const httplib::Request& request, httplib::Response& response) {
    response.status = 200;
    try {
      (this->*handler)(request, response);
    } catch (const ApiError& error) {
      refuse(error, response);
    } catch (const std::exception& error) {
      log_warn("serve: ", endpoint, ": ", error.what());
      refuse(ApiError(500, error.what()), response);
    }
    metrics_.count_request(endpoint, response.status);
  };
}

void Server::check_allowed(const httplib::Request& request) const {
  if (is_loopback(config_.host)) {
    // A page of another site that is made to resolve to this machine still sends its own name.
    std::string host = request.get_header_value("Host");
    host =
        host.starts_with('[') ? host.substr(1, host.find(']') - 1) : host.substr(0, host.find(':'));
    if (!host.empty() && !is_loopback(host)) {
      throw ApiError(403, "the Host header names another machine: '" + host + "'");
    }
  }
  const bool open = request.path == "/" || request.path == "/health";
  const std::string given = request.get_header_value("Authorization");
  if (!config_.key.empty() && !open && !same_key(given, "Bearer " + config_.key)) {
    throw ApiError(
        401,
        given.empty() ? "no key was given; send Authorization: Bearer KEY" : "the key is wrong", "",
        "invalid_api_key");
  }
  if (draining_ && request.method == "POST") {
    throw ApiError(503, "the server is stopping");
  }
  // A small body could unpack into more memory than there is.
  if (request.has_header("Content-Encoding") &&
      request.get_header_value("Content-Encoding") != "identity") {
    throw ApiError(415, "packed bodies are not read; send no Content-Encoding");
  }
}

void Server::check_body(const httplib::Request& request) const {
  // Other types are what a page of any site may send without asking.
  const std::string type = request.get_header_value("Content-Type");
  if (type.substr(0, type.find(';')) != json_type) {
    throw ApiError(415, "the body is '" + type + "'; send Content-Type: application/json");
  }
}

void Server::check_model(const std::string& model) const {
  if (!model.empty() && model != name_) {
    throw ApiError(404, "there is no model '" + model + "'; this server has '" + name_ + "'",
                   "model", "model_not_found");
  }
}

RequestLimits Server::limits() const {
  RequestLimits out;
  out.context = loaded_.decoder().config().context;
  out.vocab = loaded_.decoder().config().vocab;
  out.max_tokens = config_.max_tokens;
  return out;
}

void Server::chat_completions(const httplib::Request& request, httplib::Response& response) {
  completions(request, response, true);
}

void Server::text_completions(const httplib::Request& request, httplib::Response& response) {
  completions(request, response, false);
}

void Server::completions(const httplib::Request& request, httplib::Response& response, bool chat) {
  check_body(request);
  CompletionRequest parsed = chat ? parse_chat_request(request.body, limits())
                                  : parse_text_request(request.body, limits());
  check_model(parsed.model);
  const std::string id =
      fmt::format("{}-{:x}-{:x}", chat ? "chatcmpl" : "cmpl", created_, next_id_++);
  auto answering = std::make_shared<Answering>(
      CompletionAnswer(loaded_, std::move(parsed), limits(),
                       {id, static_cast<int64_t>(std::time(nullptr)), name_}, fresh_seed()),
      answering_);
  try {
    answering->reading = engine_.submit(answering->answer.engine_requests());
  } catch (const Error& error) {
    throw ApiError(400, error.what());
  }
  if (answering->reading == nullptr) {
    throw ApiError(429, "the server is busy: its queue is full; try again", "", "queue_full");
  }
  if (answering->answer.request().stream) {
    answer_in_chunks(std::move(answering), response);
  } else {
    answer_whole(*answering, response);
  }
}

// Takes the next event, and sees whether going on makes sense. Returns the chunks; `over` where the
// client is gone. Throws ApiError where time is up.
std::vector<std::string> Server::next_chunks(Answering& answering, bool& gone) {
  std::vector<std::string> out;
  if (const auto event = answering.reading->next(glance)) {
    if (!std::exchange(answering.first_token, true)) {
      metrics_.observe_first_token(seconds_since(answering.start));
    }
    out = answering.answer.take(*event);
    if (!answering.answer.wants(event->answer)) {
      answering.reading->drop(event->answer);
    }
  }
  if (Clock::now() - answering.looked >= glance) {
    answering.looked = Clock::now();
    const Connection* connection = Connection::current();
    gone = connection != nullptr && !connection->alive();
    if (cutting_off_) {
      throw ApiError(503, "the server is stopping");
    }
    if (seconds_since(answering.start) > static_cast<double>(config_.request_seconds)) {
      throw ApiError(504, concat("the answer took more than ", config_.request_seconds, " s"), "",
                     "timeout");
    }
  }
  return out;
}

void Server::answer_whole(Answering& answering, httplib::Response& response) {
  while (!answering.answer.done()) {
    bool gone = false;
    next_chunks(answering, gone);
    if (gone) {
      response.status = 499;  // nobody reads it; counted as nginx counts it
      return;
    }
  }
  metrics_.observe_seconds(seconds_since(answering.start));
  response.set_content(answering.answer.body(), json_type);
}

void Server::answer_in_chunks(std::shared_ptr<Answering> shared, httplib::Response& response) {
  response.set_header("Cache-Control", "no-cache");
  response.set_chunked_content_provider(
      "text/event-stream", [this, shared](size_t, httplib::DataSink& sink) {
        Answering& answering = *shared;
        const auto send = [&](const std::string& text) {
          answering.sent = Clock::now();
          return sink.write(text.data(), text.size());
        };
        const auto send_all = [&](const std::vector<std::string>& chunks) {
          bool good = true;
          for (const std::string& chunk : chunks) {
            good = good && send(event_of(chunk));
          }
          return good;
        };
        try {
          if (!std::exchange(answering.opened, true)) {
            return send_all(answering.answer.opening());
          }
          bool gone = false;
          if (!send_all(next_chunks(answering, gone)) || gone) {
            return false;
          }
          if (answering.answer.done()) {
            metrics_.observe_seconds(seconds_since(answering.start));
            send_all(answering.answer.closing());
            send(event_of("[DONE]"));
            sink.done();
          } else if (seconds_since(answering.sent) > 10) {
            return send(": waiting\n\n");
          }
          return true;
        } catch (const ApiError& error) {
          send(event_of(error_body(error)));
        } catch (const std::exception& error) {
          log_warn("serve: ", error.what());
          send(event_of(error_body(ApiError(500, error.what()))));
        }
        sink.done();
        return true;
      });
}

void Server::embeddings(const httplib::Request& request, httplib::Response& response) {
  check_body(request);
  const EmbeddingRequest parsed = parse_embedding_request(request.body);
  check_model(parsed.model);
  std::vector<Tokens> inputs;
  int64_t tokens = 0;
  for (const CompletionRequest::Prompt& input : parsed.inputs) {
    inputs.push_back(CompletionAnswer::tokens_of(loaded_, input, limits(), "input"));
    tokens += static_cast<int64_t>(inputs.back().size());
  }
  std::vector<std::vector<float>> out;
  for (const Tokens& input : inputs) {  // texts that are being written go on between two
    const bool ran =
        engine_.run([&](const Decoder& model) { out.push_back(embedding_of(model, input)); });
    if (!ran) {
      throw ApiError(429, "the server is busy: its queue is full; try again", "", "queue_full");
    }
  }
  response.set_content(embeddings_body(parsed, name_, out, tokens), json_type);
}

void Server::models(const httplib::Request&, httplib::Response& response) {
  response.set_content(models_body(name_, created_), json_type);
}

void Server::health(const httplib::Request&, httplib::Response& response) {
  response.status = draining_ ? 503 : 200;
  response.set_content(draining_ ? R"({"status":"stopping"})" : R"({"status":"ok"})", json_type);
}

void Server::metrics(const httplib::Request&, httplib::Response& response) {
  response.set_content(metrics_.text(engine_.figures()), "text/plain; version=0.0.4");
}

void Server::page(const httplib::Request&, httplib::Response& response) {
  response.set_content(chat_page, "text/html; charset=utf-8");
}

}  // namespace ingot
