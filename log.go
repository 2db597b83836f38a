package millrace

import (
	"context"
	"log/slog"
)

// LogTrace returns hooks that tell a logger what the engine has to say, to be set in
// [Options]; nil: slog.Default, as it is when something is told. MILLRACE_DEBUG=log does so for every
// device. Each record is one of:
//
//	warning  "fault": a fault, survived ones included, as caches that were refused, compilers
//	         that failed and what ran another way after it
//	info     "plan from elsewhere": a bundle has it, and the device no use for it
//	debug    "explored", "compiled", "tuned" (each step), "cache" (each entry)
//
// Segments that run are not told: they are too many, and [TraceWriter] draws them.
func LogTrace(l *slog.Logger) *Trace {
	tell := func(level slog.Level, message string, attrs ...slog.Attr) {
		to := l
		if to == nil {
			to = slog.Default()
		}
		to.LogAttrs(context.Background(), level, "millrace: "+message, attrs...)
	}
	withError := func(err error, attrs ...slog.Attr) []slog.Attr {
		if err != nil {
			attrs = append(attrs, slog.Any("error", err))
		}
		return attrs
	}
	return &Trace{
		Explore: func(e ExploreEvent) {
			tell(slog.LevelDebug, "explored", slog.Int("ops", e.Ops), slog.Int("kernels", e.Kernels), slog.String("plan", e.Plan),
				slog.Bool("background", e.Background), slog.Duration("elapsed", e.Elapsed))
		},
		Compile: func(e CompileEvent) { // one that failed is told as a fault, too
			tell(slog.LevelDebug, "compiled", withError(e.Err, slog.String("kernel", e.Kernel), slog.Duration("elapsed", e.Elapsed))...)
		},
		Tune: func(e TuneEvent) {
			tell(slog.LevelDebug, "tuned", withError(e.Err, slog.String("kernel", e.Kernel), slog.String("candidate", e.Candidate),
				slog.String("step", e.Step), slog.Int("runs", e.Runs), slog.Duration("run", e.Elapsed))...)
		},
		Cache: func(e CacheEvent) {
			level, message := slog.LevelDebug, "cache"
			if e.Outcome == "foreign" {
				level, message = slog.LevelInfo, "plan from elsewhere"
			}
			tell(level, message, withError(e.Err, slog.String("kind", e.Kind), slog.String("outcome", e.Outcome),
				slog.Int64("bytes", e.Bytes), slog.Duration("elapsed", e.Elapsed))...)
		},
		Error: func(err error) { tell(slog.LevelWarn, "fault", slog.Any("error", err)) },
	}
}
