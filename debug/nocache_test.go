package debug_test

import _ "github.com/millrace-go/millrace/internal/nocache" // tests leave the user's cache alone
