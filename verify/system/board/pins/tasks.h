// What a simulated board is told by its standard input, and what it says of itself.
//
// A line of the input is
//
//   pass MS              time passes, which else stands still while nothing happens
//   after BYTES TASK     once so many more bytes have gone to the card something is done, one such task at a time
//
// and is printed, with the board's time, when it is done. What tasks there are is for the program to say.
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

// Prints what has happened, with the time.
inline void say(const std::string &what, uint64_t time) {
    printf("%s at %.3f ms\n", what.c_str(), double(time) / MS);
    fflush(stdout);
}

// Prints that an LED has gone on or out.
inline void say_led(int which, bool lit, uint64_t time) {
    say(std::string(LEDS[which]) + (lit ? " on" : " out"), time);
}

class Told {
  protected:
    using Task = std::function<void()>;

    ~Told() = default;

    virtual uint64_t time() const = 0;
    virtual void pass() = 0;              // lets some time pass
    virtual uint64_t passed() const = 0;  // bytes that have gone to the card

    // The task of a name, with what else it takes of its line; none when there is none.
    virtual Task task_of(const std::string &name, std::istream &rest) = 0;

    // Takes what stands in the standard input; false when that has ended.
    bool listen_to_input() {
        char buffer[256];
        ssize_t n = read(STDIN_FILENO, buffer, sizeof buffer);
        if (n <= 0) return false;
        input.append(buffer, n);
        for (size_t end; (end = input.find('\n')) != std::string::npos; input.erase(0, end + 1))
            command(input.substr(0, end));
        return true;
    }

    // Carries out the task that is due, if one is, and says whether.
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
    Task task;         // that is to be carried out,
    uint64_t due = 0;  // when so many bytes have passed
};

}  // namespace usb
