#pragma once

#include <httplib.h>

#include <array>
#include <chrono>
#include <string>

namespace ingot {

// One client's connection as httplib reads and writes it, with what httplib leaves out: a limit on
// the time and bytes that a whole request may take, however slowly it trickles in, and whether the
// client is still there while its answer is computed.
class Connection final : public httplib::Stream {
 public:
  struct Limits {
    std::chrono::milliseconds request{30000};  // for a request to arrive
    std::chrono::milliseconds write{30000};    // for the client to take some bytes
    size_t request_bytes = size_t{64} << 20;
  };
  Connection(socket_t socket, const Limits& limits);

  // Begins a new request: its time and bytes count from here.
  void begin();
  // Whether something comes in that time, or the client closes.
  bool readable_within(std::chrono::milliseconds most) const;
  // Whether the client has not closed its side.
  bool alive() const;

  bool is_readable() const override;
  bool is_writable() const override { return alive(); }
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

  // Whether it ends after this response: the rest of the request was not read.
  bool ends() const { return ends_; }
  void end() { ends_ = true; }

  // The connection that this thread serves; null outside a request.
  static Connection*& current();

 private:
  bool wait(short events, std::chrono::milliseconds most) const;
  ssize_t receive(char* to, size_t size);

  socket_t socket_;
  Limits limits_;
  std::chrono::steady_clock::time_point deadline_;
  size_t bytes_ = 0;
  bool ends_ = false;
  std::array<char, 4096> ahead_{};  // read before it was asked for
  size_t ahead_begin_ = 0, ahead_end_ = 0;
};

}  // namespace ingot
