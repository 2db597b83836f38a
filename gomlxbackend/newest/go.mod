// Nothing is in this module: with its workspace it says which versions the
// backend is tested with beside those of its own go.mod, the newest ones.
module github.com/millrace-go/millrace/gomlxbackend/newest

go 1.27

require github.com/gomlx/compute v0.1.14
