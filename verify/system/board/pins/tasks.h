// The commands of a simulated board on its standard input, and its messages.
//
// A line of the input is
//
//   pass MS              advances time, which otherwise stops while the board is idle
//   after BYTES TASK     does a task after this many more bytes to the card, one such task at a time
//
// The board prints each line, with its own time, when it is done. Each program has its own tasks.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <string>
#include <utility>

#include "fpga.h"

namespace usb {

[[noreturn]] inline void fail(const std::string &what) {
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, what.c_str());
    exit(1);
}

// Prints an event with its time.
inline void say(const std::string &what, uint64_t time) {
    printf("%s at %.3f ms\n", what.c_str(), double(time) / MS);
    fflush(stdout);
}

// Prints that an LED was switched on or off.
inline void say_led(int which, bool lit, uint64_t time) {
    say(std::string(LEDS[which]) + (lit ? " on" : " out"), time);
}

class Told {
  protected:
    using Task = std::function<void()>;

    ~Told() = default;

    virtual uint64_t time() const = 0;
    virtual void pass() = 0;              // advances time
    virtual uint64_t passed() const = 0;  // bytes sent to the card

    // Returns the task with this name and the rest of its line, or none for an unknown name.
    virtual Task task_of(const std::string &name, std::istream &rest) = 0;

    // Handles the lines of the standard input; returns false at its end.
    bool listen_to_input() {
        char buffer[256];
        ssize_t n = read(STDIN_FILENO, buffer, sizeof buffer);
        if (n <= 0) return false;
        input.append(buffer, n);
        for (size_t end; (end = input.find('\n')) != std::string::npos; input.erase(0, end + 1))
            command(input.substr(0, end));
        return true;
    }

    // Does the task if it is due, and returns whether it was.
    bool carry_out() {
        if (!task || passed() < due) return false;
        std::exchange(task, nullptr)();
        say(said, time());
        return true;
    }

  private:
    void command(const std::string &line) {
        std::istringstream words(line);
        std::string first, name;
        uint64_t number = 0;
        words >> first >> number >> name;
        if (first == "pass" && number) {
            for (uint64_t end = time() + number * MS; time() < end;) pass();
            say(line, time());
            return;
        }
        Task told = first == "after" ? task_of(name, words) : nullptr;
        if (!told) fail("no command: " + line);
        due = passed() + number;
        task = told;
        said = line;
    }

    std::string input, said;
    Task task;         // the pending task
    uint64_t due = 0;  // value of passed() at which to do it
};

}  // namespace usb
