#pragma once

#include <httplib.h>

#include <atomic>
#include <string>

#include "ingot/cli/serve_connection.h"

namespace ingot {

// httplib's server over our Connection: one thread a connection, requests after another on it.
class HttpServer final : public httplib::Server {
 public:
  // While `draining` is true, connections close after the request that they are in.
  HttpServer(const Connection::Limits& limits, size_t threads, const std::atomic<bool>& draining);

  // Takes a port, 0: any that is free; returns which, or a negative number where that is not
  // possible.
  int bind(const std::string& host, int port);

 private:
  bool process_and_close_socket(socket_t socket) override;
  bool wait_for_request(const Connection& connection) const;

  Connection::Limits limits_;
  const std::atomic<bool>& draining_;
};

}  // namespace ingot
