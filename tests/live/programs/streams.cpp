// C++ streams, formatted and binary, written, read and appended to.
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

int main() {
  std::vector<char> data(4 << 20);
  for (std::size_t k = 0; k < data.size(); ++k) data[k] = static_cast<char>(k * 2654435761u >> 13);
  {
    std::ofstream file("streams.bin", std::ios::binary);
    for (std::size_t at = 0; at < data.size(); at += 32768) file.write(data.data() + at, 32768);
    if (!file) return 1;
  }
  {
    std::ofstream file("streams.txt");
    for (int k = 0; k < 20000; ++k) file << "number " << k << '\n';
  }
  std::ifstream in("streams.bin", std::ios::binary);
  const std::vector<char> back((std::istreambuf_iterator<char>(in)),
                               std::istreambuf_iterator<char>());
  std::ifstream text("streams.txt");
  std::string word;
  long sum = 0;
  for (int k; text >> word >> k;) sum += k;
  std::fstream both("streams.txt", std::ios::in | std::ios::out | std::ios::ate);
  both << "end\n";
  both.seekg(0);
  std::getline(both, word);
  std::cout << (back == data && sum == 199990000L && word == "number 0" ? "equal" : "different")
            << std::endl;
  return back == data ? 0 : 1;
}
