package main

import (
	"fmt"

	"eagleray/tests/clients/go/session"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

func clientset(s *session.Session) *kubernetes.Clientset {
	return session.Must(kubernetes.NewForConfig(s.Config))
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		TerminationGracePeriodSeconds: ptr.To[int64](0),
		Containers: []corev1.Container{{
			Name: "web", Image: "busybox", Command: []string{"sleep", "1000"},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")},
			},
		}},
	}
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()},
		},
	}
}

// typed creates, reads, changes and deletes by the generated clients.
func typed(s *session.Session) {
	client := clientset(s)
	writes(s, client)
	refusals(s, client)
	lists(s, client)
	deployments(s, client)
	evictions(s, client)
}

func writes(s *session.Session, client *kubernetes.Clientset) {
	maps := client.CoreV1().ConfigMaps(s.Namespace)
	made := session.Must(maps.Create(s.Context, configMap("one", map[string]string{"a": "1"}), metav1.CreateOptions{}))
	session.True("it has a uid", made.UID != "")
	session.Check(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		found, err := maps.Get(s.Context, "one", metav1.GetOptions{})
		if err != nil {
			return err
		}
		found.BinaryData = map[string][]byte{"raw": {0, 1, 255}}
		_, err = maps.Update(s.Context, found, metav1.UpdateOptions{})
		return err
	}))
	for kind, patch := range map[types.PatchType]string{
		types.MergePatchType:          `{"data":{"b":"2"}}`,
		types.JSONPatchType:           `[{"op":"add","path":"/data/c","value":"3"}]`,
		types.StrategicMergePatchType: `{"data":{"d":"4"}}`,
	} {
		session.Must(maps.Patch(s.Context, "one", kind, []byte(patch), metav1.PatchOptions{}))
	}
	found := session.Must(maps.Get(s.Context, "one", metav1.GetOptions{}))
	session.Equal("data", found.Data, map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"})
	session.Equal("binary data", found.BinaryData["raw"], []byte{0, 1, 255})
	dry := configMap("dry", nil)
	session.Must(maps.Create(s.Context, dry, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
	_, err := maps.Get(s.Context, "dry", metav1.GetOptions{})
	session.True("a dry run keeps nothing", apierrors.IsNotFound(err))
}

func refusals(s *session.Session, client *kubernetes.Clientset) {
	maps := client.CoreV1().ConfigMaps(s.Namespace)
	_, err := maps.Create(s.Context, configMap("one", nil), metav1.CreateOptions{})
	session.True("the name is taken", apierrors.IsAlreadyExists(err))
	stale := configMap("one", nil)
	stale.ResourceVersion = "1"
	_, err = maps.Update(s.Context, stale, metav1.UpdateOptions{})
	session.True("an old version is a conflict", apierrors.IsConflict(err))
	wrong := ptr.To[types.UID]("somebody-else")
	err = maps.Delete(s.Context, "one", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: wrong}})
	session.True("another uid is a conflict", apierrors.IsConflict(err))
	bad := deployment("Bad_Name", 1)
	bad.Spec.Template.Spec.Containers = nil
	_, err = client.AppsV1().Deployments(s.Namespace).Create(s.Context, bad, metav1.CreateOptions{})
	session.True("the object is invalid", apierrors.IsInvalid(err))
	status, ok := err.(apierrors.APIStatus)
	session.True("a refusal is a Status", ok)
	fields := map[string]bool{}
	for _, cause := range status.Status().Details.Causes {
		fields[cause.Field] = true
	}
	session.True("causes name fields", fields["metadata.name"] && fields["spec.template.spec.containers"])
}

func lists(s *session.Session, client *kubernetes.Clientset) {
	maps := client.CoreV1().ConfigMaps(s.Namespace)
	for number := range 5 {
		one := configMap(fmt.Sprintf("many-%d", number), nil)
		one.Labels = map[string]string{"many": "yes"}
		session.Must(maps.Create(s.Context, one, metav1.CreateOptions{}))
	}
	var names []string
	options := metav1.ListOptions{LabelSelector: "many=yes", Limit: 2}
	for {
		page := session.Must(maps.List(s.Context, options))
		for _, one := range page.Items {
			names = append(names, one.Name)
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	session.Equal("pages", names, []string{"many-0", "many-1", "many-2", "many-3", "many-4"})
	one := session.Must(maps.List(s.Context, metav1.ListOptions{FieldSelector: "metadata.name=many-3"}))
	session.Equal("by a field", len(one.Items), 1)
	session.Check(maps.DeleteCollection(s.Context, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "many=yes"}))
	none := session.Must(maps.List(s.Context, metav1.ListOptions{LabelSelector: "many"}))
	session.Equal("after all were deleted", len(none.Items), 0)
}

func deployments(s *session.Session, client *kubernetes.Clientset) {
	all := client.AppsV1().Deployments(s.Namespace)
	session.Must(all.Create(s.Context, deployment("web", 1), metav1.CreateOptions{}))
	ready := func(count int32) func() (bool, error) {
		return func() (bool, error) {
			found, err := all.Get(s.Context, "web", metav1.GetOptions{})
			return err == nil && found.Status.ReadyReplicas == count, err
		}
	}
	s.Eventually("one Pod is ready", ready(1))
	scale := session.Must(all.GetScale(s.Context, "web", metav1.GetOptions{}))
	session.Equal("scale's selector", scale.Status.Selector, "app=web")
	scale.Spec.Replicas = 2
	session.Must(all.UpdateScale(s.Context, "web", scale, metav1.UpdateOptions{}))
	s.Eventually("two Pods are ready", ready(2))
	foreground := metav1.DeletePropagationForeground
	session.Check(all.Delete(s.Context, "web", metav1.DeleteOptions{PropagationPolicy: &foreground}))
	s.Eventually("it is gone, and its Pods before it", func() (bool, error) {
		_, err := all.Get(s.Context, "web", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return false, err
		}
		pods := session.Must(client.CoreV1().Pods(s.Namespace).List(s.Context, metav1.ListOptions{LabelSelector: "app=web"}))
		session.Equal("Pods that outlived their Deployment", len(pods.Items), 0)
		return true, nil
	})
}

func evictions(s *session.Session, client *kubernetes.Clientset) {
	pods := client.CoreV1().Pods(s.Namespace)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "alone"}, Spec: podSpec()}
	session.Must(pods.Create(s.Context, pod, metav1.CreateOptions{}))
	s.Eventually("it runs", func() (bool, error) {
		found, err := pods.Get(s.Context, "alone", metav1.GetOptions{})
		return err == nil && found.Status.Phase == corev1.PodRunning, err
	})
	session.Check(pods.EvictV1(s.Context, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "alone"}}))
	s.Eventually("it is evicted", func() (bool, error) {
		_, err := pods.Get(s.Context, "alone", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}
