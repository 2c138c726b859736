#include "ingot/cli/serve_http.h"

#include <sys/socket.h>
#include <unistd.h>

namespace ingot {
namespace {

constexpr int64_t most_requests = 1000;  // on one connection
constexpr std::chrono::seconds idle{10};
constexpr std::chrono::milliseconds look_around{100};

// Closes so that the client gets the end of its response even where it is still sending.
void close_gently(socket_t socket) {
  ::shutdown(socket, SHUT_WR);
  char ignored[4096];
  for (int i = 0; i < 256 && ::recv(socket, ignored, sizeof(ignored), MSG_DONTWAIT) > 0; ++i) {
  }
  ::close(socket);
}

}  // namespace

HttpServer::HttpServer(const Connection::Limits& limits, size_t threads,
                       const std::atomic<bool>& draining)
    : limits_(limits), draining_(draining) {
  new_task_queue = [threads] { return new httplib::ThreadPool(threads); };
  set_tcp_nodelay(true);
  // Without SO_REUSEPORT, which would let two servers share a port unnoticed.
  set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
}

int HttpServer::bind(const std::string& host, int port) {
  constexpr int backlog = 512;
  const int taken = port == 0 ? bind_to_any_port(host) : bind_to_port(host, port) ? port : -1;
  if (taken > 0) {
    ::listen(svr_sock_, backlog);  // httplib's own is 5
  }
  return taken;
}

bool HttpServer::wait_for_request(const Connection& connection) const {
  for (auto waited = look_around; waited <= idle; waited += look_around) {
    if (connection.readable_within(look_around)) {
      return true;
    }
    if (draining_) {
      return false;
    }
  }
  return false;
}

bool HttpServer::process_and_close_socket(socket_t socket) {
  Connection connection(socket, limits_);
  Connection::current() = &connection;
  for (int64_t count = 1; count <= most_requests && wait_for_request(connection); ++count) {
    connection.begin();
    bool closed = false;
    const bool last = draining_ || count == most_requests;
    if (!process_request(connection, last, closed, nullptr) || closed || last ||
        connection.ends()) {
      break;
    }
  }
  Connection::current() = nullptr;
  close_gently(socket);
  return true;
}

}  // namespace ingot
