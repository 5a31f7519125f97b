// Command kindsoracle tells what Kubernetes' own code makes of objects of the built-in kinds: see README.md.
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
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/capabilities"
	"k8s.io/kubernetes/pkg/printers"
	printersinternal "k8s.io/kubernetes/pkg/printers/internalversion"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/endpoint"
	"k8s.io/kubernetes/pkg/registry/core/event"
	"k8s.io/kubernetes/pkg/registry/core/limitrange"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
	"k8s.io/kubernetes/pkg/registry/core/resourcequota"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/discovery/endpointslice"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/ingressclass"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
)

// A question is what is to be done (`op`), the object, and the object that it replaces.
type question struct {
	Name   string          `json:"name"`
	Op     string          `json:"op"`
	Obj    json.RawMessage `json:"obj"`
	Old    json.RawMessage `json:"old,omitempty"`
	Answer map[string]any  `json:"answer"`
}

type strategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
}

var strategies = map[string]strategy{
	"ClusterRole": clusterrole.Strategy, "ClusterRoleBinding": clusterrolebinding.Strategy,
	"ConfigMap": configmap.Strategy, "Deployment": deployment.Strategy, "EndpointSlice": endpointslice.Strategy,
	"Endpoints": endpoint.Strategy, "Event": event.Strategy, "Ingress": ingress.Strategy,
	"IngressClass": ingressclass.Strategy, "Job": job.Strategy, "Lease": lease.Strategy,
	"LimitRange": limitrange.Strategy, "Namespace": namespace.Strategy, "NetworkPolicy": networkpolicy.Strategy,
	"Node": node.Strategy, "PersistentVolume": persistentvolume.Strategy,
	"PersistentVolumeClaim": persistentvolumeclaim.Strategy, "PodTemplate": podtemplate.Strategy,
	"PriorityClass": priorityclass.Strategy, "ReplicaSet": replicaset.Strategy, "ResourceQuota": resourcequota.Strategy,
	"Role": role.Strategy, "RoleBinding": rolebinding.Strategy, "Secret": secret.Strategy, "Service": service.Strategy,
	"ServiceAccount": serviceaccount.Strategy, "StorageClass": storageclass.Strategy,
}

var statuses = map[string]rest.RESTUpdateStrategy{
	"Deployment": deployment.StatusStrategy, "Ingress": ingress.StatusStrategy, "Job": job.StatusStrategy,
	"Namespace": namespace.StatusStrategy, "Node": node.StatusStrategy, "PersistentVolume": persistentvolume.StatusStrategy,
	"PersistentVolumeClaim": persistentvolumeclaim.StatusStrategy, "ReplicaSet": replicaset.StatusStrategy,
	"ResourceQuota": resourcequota.StatusStrategy, "Service": service.StatusStrategy,
}

type warnings struct{ texts []string }

func (w *warnings) AddWarning(_, text string) { w.texts = append(w.texts, text) }

func main() {
	capabilities.Setup(true, 0)
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
	obj, kind := decode(q.Obj)
	recorder := &warnings{}
	ctx := warning.WithWarningRecorder(context.Background(), recorder)
	place := metav1.NamespaceNone
	if strategies[kind.Kind].NamespaceScoped() {
		place = metav1.NamespaceDefault
	}
	ctx = request.WithNamespace(ctx, place)
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{APIGroup: kind.Group, APIVersion: kind.Version, IsResourceRequest: true})
	if err := act(ctx, q, kind, obj); err != nil {
		return refusal(err)
	}
	uid := accessor(obj).GetUID()
	made, cells := external(obj, kind)
	text, err := json.Marshal(made)
	if err != nil {
		log.Fatal(err)
	}
	if uid != "" {
		text = bytes.ReplaceAll(text, []byte(uid), []byte("<uid>"))
	}
	result = map[string]any{"obj": json.RawMessage(text), "table": cells}
	if len(recorder.texts) > 0 {
		result["warnings"] = recorder.texts
	}
	return result
}

func act(ctx context.Context, q question, kind schema.GroupVersionKind, obj runtime.Object) error {
	switch q.Op {
	case "create":
		rest.FillObjectMetaSystemFields(accessor(obj))
		return rest.BeforeCreate(strategies[kind.Kind], ctx, obj)
	case "update":
		old, _ := decode(q.Old)
		return rest.BeforeUpdate(strategies[kind.Kind], ctx, obj, old)
	case "status":
		old, _ := decode(q.Old)
		return rest.BeforeUpdate(statuses[kind.Kind], ctx, obj, old)
	}
	log.Fatalf("what is %q?", q.Op)
	return nil
}

func accessor(obj runtime.Object) metav1.Object {
	found, err := meta.Accessor(obj)
	if err != nil {
		log.Fatal(err)
	}
	return found
}

func decode(text []byte) (runtime.Object, schema.GroupVersionKind) {
	var head metav1.TypeMeta
	if err := json.Unmarshal(text, &head); err != nil {
		log.Fatal(err)
	}
	kind := head.GroupVersionKind()
	internal := schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal}
	obj, _, err := legacyscheme.Codecs.UniversalDecoder(internal).Decode(text, &kind, nil)
	if err != nil {
		log.Fatalf("%s: %s", err, text)
	}
	return obj, kind
}

// external returns an object as it comes back from storage, and its row of a table.
func external(obj runtime.Object, kind schema.GroupVersionKind) (map[string]any, map[string]any) {
	accessor(obj).SetCreationTimestamp(metav1.Time{})
	text, err := runtime.Encode(legacyscheme.Codecs.LegacyCodec(kind.GroupVersion()), obj)
	if err != nil {
		log.Fatal(err)
	}
	stored, _ := decode(text)
	text, err = runtime.Encode(legacyscheme.Codecs.LegacyCodec(kind.GroupVersion()), stored)
	if err != nil {
		log.Fatal(err)
	}
	var made map[string]any
	if err := json.Unmarshal(text, &made); err != nil {
		log.Fatal(err)
	}
	generator := printers.NewTableGenerator().With(printersinternal.AddHandlers)
	table, err := generator.GenerateTable(stored, printers.GenerateOptions{Wide: true})
	if err != nil {
		// Kinds without columns of their own have those that every kind has.
		table, err = rest.NewDefaultTableConvertor(schema.GroupResource{}).ConvertToTable(context.Background(), stored, nil)
	}
	if err != nil {
		log.Fatal(err)
	}
	columns := []string{}
	for _, column := range table.ColumnDefinitions {
		columns = append(columns, strings.Join([]string{column.Name, column.Type, column.Format, fmt.Sprint(column.Priority)}, "|"))
	}
	return made, map[string]any{"columns": columns, "cells": table.Rows[0].Cells}
}

func refusal(err error) map[string]any {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"causes": status.Status().Details.Causes}
}
