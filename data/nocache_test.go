package data_test

import _ "github.com/millrace-go/millrace/internal/nocache"
