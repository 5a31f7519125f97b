package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"eagleray/tests/clients/go/session"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kube-openapi/pkg/util/proto"
	"k8s.io/utils/ptr"
)

// discover learns what a cluster serves, in all the ways that clients do.
func discover(s *session.Session) {
	client := session.Must(discovery.NewDiscoveryClientForConfig(s.Config))
	session.Equal("major version", session.Must(client.ServerVersion()).Major, "1")
	_, lists := must2(client.ServerGroupsAndResources())
	session.True("aggregated discovery tells of Deployments", tells(lists, "apps/v1", "deployments"))
	session.True("and of their parts", tells(lists, "apps/v1", "deployments/scale"))
	legacy := client.WithLegacy()
	_, lists = must2(legacy.ServerGroupsAndResources())
	session.True("and so does the older way", tells(lists, "apps/v1", "deployments/scale"))
	session.Must(client.ServerPreferredNamespacedResources())

	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	expanded := restmapper.NewShortcutExpander(mapper, client, nil)
	kind := session.Must(expanded.KindFor(schema.GroupVersionResource{Resource: "deploy"}))
	session.Equal("what a short name stands for", kind, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	mapping := session.Must(mapper.RESTMapping(schema.GroupKind{Kind: "Node"}))
	session.Equal("scope", mapping.Scope.Name(), meta.RESTScopeNameRoot)

	older := session.Must(client.OpenAPISchema())
	session.Equal("version of the older description", older.Swagger, "2.0")
	session.True("its paths", len(older.Paths.Path) > 50)
	models := session.Must(proto.NewOpenAPIData(older))
	pod, ok := models.LookupModel("io.k8s.api.core.v1.PodSpec").(*proto.Kind)
	session.True("its schemas", ok && pod.IsRequired("containers"))
	_, ok = pod.Fields["containers"].(*proto.Array)
	session.True("and their fields", ok)
	newer := session.Must(client.OpenAPIV3().Paths())
	document := session.Must(newer["apis/apps/v1"].Schema("application/json"))
	var described struct {
		Components struct{ Schemas map[string]any }
	}
	session.Check(json.Unmarshal(document, &described))
	session.True("the newer description", described.Components.Schemas["io.k8s.api.apps.v1.Deployment"] != nil)
	root := openapi.NewClient(client.RESTClient())
	session.True("the root of it", len(session.Must(root.Paths())) > 5)
	plain := session.Must(client.RESTClient().Get().AbsPath("/openapi/v2").SetHeader("Accept", "application/json").DoRaw(s.Context))
	var swagger struct {
		Definitions map[string]any
		Paths       map[string]any
	}
	session.Check(json.Unmarshal(plain, &swagger))
	session.True("the older description as JSON", swagger.Definitions["io.k8s.api.apps.v1.Deployment"] != nil)
}

func tells(lists []*metav1.APIResourceList, version, name string) bool {
	for _, list := range lists {
		for _, one := range list.APIResources {
			if list.GroupVersion == version && one.Name == name {
				return true
			}
		}
	}
	return false
}

func must2[A, B any](a A, b B, err error) (A, B) {
	session.Check(err)
	return a, b
}

// dynamically defines a kind of its own and works on its objects without types.
func dynamically(s *session.Session) {
	group := strings.ReplaceAll(s.Namespace, "-", "") + ".tour.example"
	ships := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "ships"}
	define(s, ships)
	client := session.Must(dynamic.NewForConfig(s.Config))
	all := client.Resource(ships).Namespace(s.Namespace)
	ship := func(name string, crew int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": ships.GroupVersion().String(), "kind": "Ship",
			"metadata": map[string]any{"name": name},
			"spec":     map[string]any{"crew": crew},
		}}
	}

	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, s.Namespace, nil)
	informer := factory.ForResource(ships)
	go informer.Informer().Run(s.Context.Done())
	session.True("the cache is filled", cache.WaitForCacheSync(s.Context.Done(), informer.Informer().HasSynced))

	made := session.Must(all.Create(s.Context, ship("one", 3), metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}))
	cargo, _, _ := unstructured.NestedString(made.Object, "spec", "cargo")
	session.Equal("a default", cargo, "empty")
	_, err := all.Create(s.Context, ship("mutinous", -1), metav1.CreateOptions{})
	session.True("a schema refuses", apierrors.IsInvalid(err))
	_, err = all.Patch(s.Context, "one", types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{})
	session.True("a strategic merge patch is for built-in kinds", apierrors.IsUnsupportedMediaType(err))
	_, err = all.Patch(s.Context, "one", types.MergePatchType, []byte(`{"spec":{"crew":4}}`), metav1.PatchOptions{})
	session.Check(err)
	crewed := session.Must(all.Get(s.Context, "one", metav1.GetOptions{}))
	session.Equal("generation", crewed.GetGeneration(), int64(2))
	session.Check(unstructured.SetNestedField(crewed.Object, int64(4), "status", "aboard"))
	session.Check(unstructured.SetNestedField(crewed.Object, int64(9), "spec", "crew"))
	sailed := session.Must(all.UpdateStatus(s.Context, crewed, metav1.UpdateOptions{}))
	crew, _, _ := unstructured.NestedInt64(sailed.Object, "spec", "crew")
	session.Equal("a write of the status changes nothing else", crew, int64(4))

	applied := ship("two", 5)
	session.Must(all.Apply(s.Context, "two", applied, metav1.ApplyOptions{FieldManager: "first"}))
	session.Check(unstructured.SetNestedField(applied.Object, int64(6), "spec", "crew"))
	_, err = all.Apply(s.Context, "two", applied, metav1.ApplyOptions{FieldManager: "second"})
	session.True("two appliers of one field are in conflict", apierrors.IsConflict(err))
	session.Must(all.Apply(s.Context, "two", applied, metav1.ApplyOptions{FieldManager: "second", Force: true}))

	scaled(s, ships.GroupResource())
	s.Eventually("the cache sees everything", func() (bool, error) {
		object, err := informer.Lister().ByNamespace(s.Namespace).Get("one")
		if err != nil {
			return false, nil
		}
		crew, _, _ := unstructured.NestedInt64(object.(*unstructured.Unstructured).Object, "spec", "crew")
		return crew == 7, nil
	})
	listed := session.Must(all.List(s.Context, metav1.ListOptions{}))
	session.Equal("all of them", len(listed.Items), 2)
	session.Check(all.DeleteCollection(s.Context, metav1.DeleteOptions{}, metav1.ListOptions{}))
}

func define(s *session.Session, ships schema.GroupVersionResource) {
	definitions := session.Must(apiextensions.NewForConfig(s.Config)).ApiextensionsV1().CustomResourceDefinitions()
	integer := apiextensionsv1.JSONSchemaProps{Type: "integer", Minimum: ptr.To(0.0)}
	properties := map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"crew":  integer,
			"cargo": {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"empty"`)}},
		}},
		"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"aboard": integer}},
	}
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: ships.GroupResource().String()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: ships.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "ships", Singular: "ship", Kind: "Ship"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: ships.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties},
				},
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
					Scale: &apiextensionsv1.CustomResourceSubresourceScale{
						SpecReplicasPath: ".spec.crew", StatusReplicasPath: ".status.aboard",
					},
				},
			}},
		},
	}
	session.Must(definitions.Create(s.Context, definition, metav1.CreateOptions{}))
	s.Eventually("the kind is established", func() (bool, error) {
		found, err := definitions.Get(s.Context, definition.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, one := range found.Status.Conditions {
			if one.Type == apiextensionsv1.Established && one.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
}

// scaled sets a size by the client that autoscalers use, which knows no kind.
func scaled(s *session.Session, ships schema.GroupResource) {
	client := session.Must(discovery.NewDiscoveryClientForConfig(s.Config))
	groups := session.Must(restmapper.GetAPIGroupResources(client))
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	scales := session.Must(scale.NewForConfig(s.Config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(client)))
	found := session.Must(scales.Scales(s.Namespace).Get(s.Context, ships, "one", metav1.GetOptions{}))
	session.Equal("size", fmt.Sprint(found.Spec.Replicas, found.Status.Replicas), "4 4")
	found.Spec.Replicas = 7
	session.Must(scales.Scales(s.Namespace).Update(s.Context, ships, found, metav1.UpdateOptions{}))
}
