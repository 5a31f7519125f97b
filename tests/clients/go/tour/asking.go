package main

import (
	"eagleray/tests/clients/go/session"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	newevents "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
)

// reviews asks who it is and what it may do, as itself and as a service account with a role.
func reviews(s *session.Session) {
	client := clientset(s)
	me := session.Must(client.AuthenticationV1().SelfSubjectReviews().Create(s.Context, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}))
	session.True("it has a name", me.Status.UserInfo.Username != "")

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}
	session.Must(client.CoreV1().ServiceAccounts(s.Namespace).Create(s.Context, account, metav1.CreateOptions{}))
	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{rule}}
	session.Must(client.RbacV1().Roles(s.Namespace).Create(s.Context, role, metav1.CreateOptions{}))
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "reader", Namespace: s.Namespace}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
	}
	session.Must(client.RbacV1().RoleBindings(s.Namespace).Create(s.Context, binding, metav1.CreateOptions{}))
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](600)}}
	token := session.Must(client.CoreV1().ServiceAccounts(s.Namespace).CreateToken(s.Context, "reader", request, metav1.CreateOptions{}))

	config := rest.AnonymousClientConfig(s.Config)
	config.BearerToken = token.Status.Token
	reader := session.Must(kubernetes.NewForConfig(config))
	s.Eventually("the role is in force", func() (bool, error) {
		_, err := reader.CoreV1().ConfigMaps(s.Namespace).List(s.Context, metav1.ListOptions{})
		return err == nil, nil
	})
	_, err := reader.CoreV1().Secrets(s.Namespace).List(s.Context, metav1.ListOptions{})
	session.True("secrets are forbidden", apierrors.IsForbidden(err))
	for verb, want := range map[string]bool{"list": true, "delete": false} {
		question := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: s.Namespace, Verb: verb, Resource: "configmaps"},
		}}
		answer := session.Must(reader.AuthorizationV1().SelfSubjectAccessReviews().Create(s.Context, question, metav1.CreateOptions{}))
		session.Equal("may it "+verb, answer.Status.Allowed, want)
	}
	checked := session.Must(client.AuthenticationV1().TokenReviews().Create(s.Context, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token},
	}, metav1.CreateOptions{}))
	session.Equal("whose token", checked.Status.User.Username, "system:serviceaccount:"+s.Namespace+":reader")
}

// events tells of an object by both recorders; what is told twice is one event with a count.
func events(s *session.Session) {
	client := clientset(s)
	about := session.Must(client.CoreV1().ConfigMaps(s.Namespace).Create(s.Context, configMap("told-of", nil), metav1.CreateOptions{}))

	older := record.NewBroadcaster()
	older.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: client.CoreV1().Events(s.Namespace)})
	recorder := older.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tour"})
	for range 3 {
		recorder.Event(about, corev1.EventTypeNormal, "Older", "told by the older recorder")
	}
	newer := newevents.NewBroadcaster(&newevents.EventSinkImpl{Interface: client.EventsV1()})
	session.Check(newer.StartRecordingToSinkWithContext(s.Context))
	newer.NewRecorder(scheme.Scheme, "tour.example/tour").Eventf(about, nil, corev1.EventTypeWarning, "Newer", "Telling", "told by the newer recorder")

	s.Eventually("the events are there", func() (bool, error) {
		told, err := client.CoreV1().Events(s.Namespace).Search(scheme.Scheme, about)
		if err != nil {
			return false, err
		}
		counts := map[string]int32{}
		for _, one := range told.Items {
			counts[one.Reason] = max(one.Count, 1)
		}
		return counts["Older"] == 3 && counts["Newer"] == 1, nil
	})
	warnings := metav1.ListOptions{FieldSelector: "type=Warning,reason=Newer"}
	listed := session.Must(client.EventsV1().Events(s.Namespace).List(s.Context, warnings))
	session.Equal("warnings", len(listed.Items), 1)
	session.Equal("who told", listed.Items[0].ReportingController, "tour.example/tour")
	older.Shutdown()
	newer.Shutdown()
}
