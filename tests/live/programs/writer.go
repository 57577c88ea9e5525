// Go calls the kernel itself: no preloaded library sees it.
package main

import (
	"bytes"
	"os"
)

func main() {
	file, err := os.Create("go.bin")
	if err != nil {
		panic(err)
	}
	for k := 0; k < 32; k++ {
		if _, err := file.Write(bytes.Repeat([]byte{byte('a' + k%26)}, 65536)); err != nil {
			panic(err)
		}
	}
	if err := file.Close(); err != nil {
		panic(err)
	}
}
