// Command oracle tells what Kubernetes' own code makes of Pods: see README.md.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/capabilities"
	"k8s.io/kubernetes/pkg/printers"
	printersinternal "k8s.io/kubernetes/pkg/printers/internalversion"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
)

// A question is what is to be done (`op`), the object, and the object that it replaces.
type question struct {
	Op     string          `json:"op"`
	Obj    json.RawMessage `json:"obj"`
	Old    json.RawMessage `json:"old,omitempty"`
	Answer map[string]any  `json:"answer"`
}

type warnings struct{ texts []string }

func (w *warnings) AddWarning(_, text string) { w.texts = append(w.texts, text) }

func main() {
	capabilities.Setup(true, 0)
	if len(os.Args) > 1 && os.Args[1] == "facts" {
		facts()
		return
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 64<<20)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for in.Scan() {
		var q question
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			log.Fatal(err)
		}
		q.Answer = answer(q)
		out.Encode(q)
	}
}

func answer(q question) (result map[string]any) {
	defer func() {
		if trouble := recover(); trouble != nil {
			result = map[string]any{"panic": fmt.Sprint(trouble)}
		}
	}()
	recorder := &warnings{}
	ctx := warning.WithWarningRecorder(context.Background(), recorder)
	ctx = request.WithNamespace(ctx, "default")
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{APIVersion: "v1", IsResourceRequest: true})
	obj := decode(q.Obj, q.Op)
	if q.Op == "table" {
		return table(obj)
	}
	if err := act(ctx, q, obj); err != nil {
		return refusal(err)
	}
	result = map[string]any{"obj": external(obj)}
	if len(recorder.texts) > 0 {
		result["warnings"] = recorder.texts
	}
	return result
}

func act(ctx context.Context, q question, obj runtime.Object) error {
	switch q.Op {
	case "create", "template":
		accessor, err := meta.Accessor(obj)
		if err != nil {
			log.Fatal(err)
		}
		rest.FillObjectMetaSystemFields(accessor)
		if q.Op == "template" {
			return rest.BeforeCreate(podtemplate.Strategy, ctx, obj)
		}
		return rest.BeforeCreate(pod.Strategy, ctx, obj)
	case "update":
		return rest.BeforeUpdate(pod.Strategy, ctx, obj, decode(q.Old, q.Op))
	case "status":
		return rest.BeforeUpdate(pod.StatusStrategy, ctx, obj, decode(q.Old, q.Op))
	case "resize":
		return rest.BeforeUpdate(pod.ResizeStrategy, ctx, obj, decode(q.Old, q.Op))
	case "ephemeralcontainers":
		return rest.BeforeUpdate(pod.EphemeralContainersStrategy, ctx, obj, decode(q.Old, q.Op))
	}
	log.Fatalf("what is %q?", q.Op)
	return nil
}

func decode(text []byte, op string) runtime.Object {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	if op == "template" {
		kind.Kind = "PodTemplate"
	}
	internal := schema.GroupVersion{Version: runtime.APIVersionInternal}
	obj, _, err := legacyscheme.Codecs.UniversalDecoder(internal).Decode(bytes.TrimSpace(text), &kind, nil)
	if err != nil {
		log.Fatal(err)
	}
	return obj
}

func external(obj runtime.Object) runtime.Object {
	var result runtime.Object = &v1.Pod{}
	if _, isTemplate := obj.(*core.PodTemplate); isTemplate {
		result = &v1.PodTemplate{}
	}
	if err := legacyscheme.Scheme.Convert(obj, result, nil); err != nil {
		log.Fatal(err)
	}
	accessor, err := meta.Accessor(result)
	if err != nil {
		log.Fatal(err)
	}
	accessor.SetCreationTimestamp(metav1.Time{})
	accessor.SetUID("")
	return result
}

func refusal(err error) map[string]any {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"causes": status.Status().Details.Causes}
}

func table(obj runtime.Object) map[string]any {
	generator := printers.NewTableGenerator().With(printersinternal.AddHandlers)
	made, err := generator.GenerateTable(obj, printers.GenerateOptions{Wide: true})
	if err != nil {
		log.Fatal(err)
	}
	row := made.Rows[0]
	// Ages grow while nobody looks.
	row.Cells[4] = "<age>"
	return map[string]any{"cells": row.Cells, "conditions": row.Conditions}
}
