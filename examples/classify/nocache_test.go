package main

import _ "github.com/millrace-go/millrace/internal/nocache"
