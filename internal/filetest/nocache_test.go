package filetest_test

import _ "github.com/millrace-go/millrace/internal/nocache"
