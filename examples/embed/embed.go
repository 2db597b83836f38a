package main

import (
	"context"
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"
	"github.com/knights-analytics/hugot"
	"github.com/knights-analytics/hugot/pipelines"
	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/gomlxbackend"
)

// embedder is hugot's feature extraction with a model. Nothing in it is Millrace's
// but that its session asked for the backend "go" while Millrace stood for it.
type embedder struct {
	session  *hugot.Session
	pipeline *pipelines.FeatureExtractionPipeline
	device   *millrace.Device // nil on GoMLX's own backend
}

// open loads the model of a folder, on Millrace with this config or, without
// replacing anything, on the backend that hugot asks for.
func open(ctx context.Context, folder string, onMillrace bool, config string) (e *embedder, err error) {
	if onMillrace {
		if err := gomlxbackend.Replace("go", config); err != nil {
			return nil, err
		}
		// So that the next one can be another.
		defer compute.Register("go", gobackend.New)
	}
	e = &embedder{}
	if e.session, err = hugot.NewGoSession(ctx); err != nil {
		return nil, err
	}
	e.pipeline, err = hugot.NewPipeline(e.session, hugot.FeatureExtractionConfig{
		ModelPath: folder,
		Name:      "embed",
		Options:   []hugot.FeatureExtractionOption{pipelines.WithNormalization()},
	})
	if err != nil {
		e.close()
		return nil, err
	}
	if b, ok := e.pipeline.Model.GoMLXModel.Backend.(*gomlxbackend.Backend); ok {
		e.device = b.Device()
	}
	if onMillrace != (e.device != nil) {
		err := fmt.Errorf("hugot computes on %s", e.pipeline.Model.GoMLXModel.Backend.Description())
		e.close()
		return nil, err
	}
	return e, nil
}

// embed is a vector of length 1 for each sentence.
func (e *embedder) embed(ctx context.Context, sentences []string) ([][]float32, error) {
	out, err := e.pipeline.RunPipeline(ctx, sentences)
	if err != nil {
		return nil, err
	}
	return out.Embeddings, nil
}

// close gives the model and its device back.
func (e *embedder) close() {
	// The session ends with what it holds; an error would be that it ended before.
	_ = e.session.Destroy()
}
