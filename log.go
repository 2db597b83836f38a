package millrace

import (
	"context"
	"log/slog"
)

// LogTrace returns hooks that report the engine's events to a logger. Set them in [Options]. If l
// is nil, each event goes to the slog.Default of its moment. MILLRACE_DEBUG=log sets these hooks
// on every device. Each record is one of:
//
//	warning  "fault": a fault, even one that the engine survived: a refused cache, a failed
//	         compiler, work that ran another way
//	info     "plan from elsewhere": a bundle has the plan, but the device cannot use it
//	debug    "explored", "compiled", "tuned" (each step), "cache" (each entry)
//
// Segments that run are not logged, because they are too many. [TraceWriter] draws them.
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
		Compile: func(e CompileEvent) { // a failed compile is also logged as a fault
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
